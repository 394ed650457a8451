#!/usr/bin/env bash
# Looks through the product's binary, or the one that is named, and the small ones beside it
# for what must be in no product: defects that are planted, attempts on the sandbox, a clock
# that can be stopped.
# Without a binary there is nothing to look through: `cargo xtask layers` asks cargo, too.
#
#   scripts/product.sh [BINARY]      its path from the root of the repository
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

binary="${1:-$target/release/automaton}"
# Where it is, the laboratory shows that this is what there is to look for.
laboratory="$target/debug/automaton-lab"
words=("rehearse with this key" "planted-secret" "time is already frozen")

if [ ! -f "$binary" ]; then
    say "$binary is not built: cargo build --release --package automaton"
    exit
fi
for word in "${words[@]}"; do
    [ ! -f "$laboratory" ] || grep -qaF "$word" "$laboratory" ||
        fail "'$word' is not even in $laboratory" "mend the list of words in scripts/product.sh"
    for file in "$binary" "$binary-sandbox" "$binary-signer"; do
        [ ! -f "$file" ] || ! grep -qaF "$word" "$file" ||
            fail "'$word' is in $file, and must be in no product" \
                "build it anew: cargo build --release --package automaton; if it stays, ask cargo xtask layers"
    done
done
say "nothing of the laboratory is in $binary"
