#!/usr/bin/env bash
# Installs the programs of others that `./test --peers` compares ours with, into
# target/peers, and prints that folder. Nothing is installed twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

packages=(
    "@foundry-rs/anvil-linux-amd64@1.7.1"
    "@foundry-rs/cast-linux-amd64@1.7.1"
    "@x402/evm@2.27.0"
    "@x402/fetch@2.27.0"
    "viem@2.57.20"
)
python_packages=("openai==3.54.0")

have npm || fail "there is no npm" "install nodejs and npm, then start again"
python3 -m pip --version >/dev/null 2>&1 ||
    fail "there is no pip" "install python3 and python3-pip, then start again"
folder="$target/peers"
mkdir -p "$folder"
wanted="${packages[*]} ${python_packages[*]}"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ]; then
    say "installing $wanted"
    rm -rf "$folder/node_modules" "$folder/python" "$folder/installed"
    npm install --prefix "$folder" --silent --no-save --no-package-lock --no-audit --no-fund \
        --ignore-scripts "${packages[@]}" >&2
    python3 -m pip install --quiet --no-input --disable-pip-version-check --no-warn-conflicts \
        --root-user-action ignore --target "$folder/python" "${python_packages[@]}" >&2
    printf '%s' "$wanted" >"$folder/installed"
fi
(cd "$folder" && pwd)
