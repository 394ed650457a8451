#!/usr/bin/env bash
# Builds the product as it is shipped and packs it: its programs, the licences and the changelog in one
# archive, with the SHA-256 of the archive beside it. Nothing is published, and nothing is fetched.
#
#   scripts/release.sh [FOLDER]      target/release-package by default
set -euo pipefail
start_folder="$PWD"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

package="$(realpath -m "$target/release-package")"
folder="$(cd "$start_folder" && realpath -m "${1:-$package}")"
programs=(automaton automaton-sandbox automaton-signer)
texts=(LICENSE-APACHE LICENSE-MIT CHANGELOG.md README.md)

have cargo || fail "cargo is not installed" "install Rust from https://rustup.rs"
host="$(rustc -vV | sed -n 's/^host: //p')"
version="$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)"
[ -n "$version" ] || fail "Cargo.toml names no version"
name="automaton-$version-$host"

say "building $name"
cargo build --locked --release --package automaton
scripts/product.sh "$target/release/automaton"

packed="$(mktemp -d)" && trap 'rm -rf "$packed"' EXIT
mkdir "$packed/$name"
for program in "${programs[@]}"; do
    [ -f "$target/release/$program" ] || fail "$target/release/$program was not built"
    install -m 755 "$target/release/$program" "$packed/$name"
done
install -m 644 "${texts[@]}" "$packed/$name"

# The same files give the same archive: in order, of nobody, with the time of the last commit.
time="$(git log -1 --format=%ct 2>/dev/null || echo 0)"
mkdir -p "$folder" || fail "$folder cannot be made"
tar -C "$packed" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" -cf - "$name" |
    gzip -n9 >"$folder/$name.tar.gz"
(cd "$folder" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
say "packed $folder/$name.tar.gz"
cat "$folder/$name.tar.gz.sha256"
