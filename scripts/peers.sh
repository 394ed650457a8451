#!/usr/bin/env bash
# Installs the programs of others that `./test --peers` compares ours with, into
# target/peers, and prints that folder. Nothing is installed twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

packages=(
    "@foundry-rs/anvil-linux-amd64@1.7.1"
    "@foundry-rs/cast-linux-amd64@1.7.1"
    "viem@2.57.20"
)

have npm || fail "there is no npm" "install nodejs and npm, then start again"
folder="$target/peers"
mkdir -p "$folder"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "${packages[*]}" ]; then
    say "installing ${packages[*]}"
    rm -rf "$folder/node_modules" "$folder/installed"
    npm install --prefix "$folder" --silent --no-save --no-package-lock --no-audit --no-fund \
        --ignore-scripts "${packages[@]}" >&2
    printf '%s' "${packages[*]}" >"$folder/installed"
fi
(cd "$folder" && pwd)
