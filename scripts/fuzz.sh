#!/usr/bin/env bash
# Fuzzes a target with what is known of it, for so many seconds (600), and keeps what it
# finds interesting in target/fuzz. Ends with an error when something does not hold; the
# file that shows it is named then.
#
#   scripts/fuzz.sh guard|command|path|call|asked|reply [SECONDS]
#   scripts/fuzz.sh --keep TARGET    puts the smallest set that reaches as much into the
#                                    corpus that the tests replay
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/machine.sh

keep=no
if [ "${1:-}" = --keep ]; then keep=yes && shift; fi
name="${1:-}"
[ -f "fuzz/fuzz_targets/$name.rs" ] ||
    fail "there is no target '$name'" "usage: scripts/fuzz.sh guard|command|path|call|asked|reply [SECONDS]"

# The stable compiler has the sanitiser and the counters of edges, and hides both.
triple="$(rustc -vV | sed -n 's/^host: //p')"
counters="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
counters+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
counters+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
say "building $name with a sanitiser"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="$counters -Zsanitizer=address --cfg fuzzing" cargo build --release \
    --manifest-path fuzz/Cargo.toml --target-dir "$target/fuzz" --target "$triple" --bin "$name"
program="$target/fuzz/$triple/release/$name"

seeds="crates/lab/corpora/fuzz/$name" found="$target/fuzz/corpus/$name"
mkdir -p "$found" "$target/fuzz/artifacts"
if [ "$keep" = yes ]; then
    small="$(mktemp -d)"
    "$program" -merge=1 -max_len=1024 "$small" "$seeds" "$found"
    rm -rf "$seeds" && mkdir -p "$seeds" && cp "$small"/* "$seeds"/ && rm -rf "$small"
    say "kept $(find "$seeds" -type f | wc -l) files in $seeds"
    exit
fi
# A fuzzer ends without tidying up.
TMPDIR="$(mktemp -d)" && export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$program" -max_total_time="${2:-600}" -timeout=10 -rss_limit_mb=4096 -max_len=20000 \
    -artifact_prefix="$target/fuzz/artifacts/$name-" "$found" "$seeds"
