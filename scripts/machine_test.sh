#!/usr/bin/env bash
# Tests of scripts/machine.sh, in seconds: what it takes for a libclang, what it shows of a
# tool's progress and failure, and that nothing which it began outlives it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset CI LIBCLANG_PATH LLVM_CONFIG_PATH LD_LIBRARY_PATH LIBRARY_PATH
world="$(mktemp -d)"
export CARGO_TARGET_DIR="$world/target" LLVM_CONFIG_PATH="$world/none"
. scripts/machine.sh
at_exit='ended; rm -rf "$world"'

failed=0
# is WHAT WANTED FOUND
is() {
    [ "$2" = "$3" ] || { printf '%s: wanted <%s>, found <%s>\n' "$1" "$2" "$3" && failed=1; }
}
finds() { if has_libclang "$world/$1"; then echo yes; else echo no; fi; }
# machine NAME FILE…: a root with these files.
machine() {
    local file name="$1"
    shift
    for file in "$@"; do
        mkdir -p "$world/$name/$(dirname "$file")" && echo x >"$world/$name/$file"
    done
}

headers=usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h
machine bare usr/lib/libc.so
is "a bare machine" no "$(finds bare)"
machine cpp usr/lib/llvm-14/lib/libclang-cpp.so.14 usr/lib/x86_64-linux-gnu/libclang-cpp.so.14 $headers
is "libclang-cpp alone" no "$(finds cpp)"
machine versioned usr/lib/llvm-14/lib/libclang-14.so.1 $headers
is "a library with its version" yes "$(finds versioned)"
machine plain usr/lib64/libclang.so usr/lib64/clang/19/include/stddef.h
is "a library without" yes "$(finds plain)"
machine local usr/local/llvm-20/lib/libclang.so.20 usr/local/llvm-20/lib/clang/20/include/stddef.h
is "one beside the system's" yes "$(finds local)"
machine headless usr/lib/x86_64-linux-gnu/libclang-14.so.1
is "a library without the compiler's headers" no "$(finds headless)"
mkdir -p "$world/dangling/usr/lib" && ln -s nowhere "$world/dangling/usr/lib/libclang.so"
is "a link to nowhere" no "$(finds dangling)"
is "a path that is named" yes "$(LIBCLANG_PATH="$world/plain/usr/lib64" finds bare)"
is "a path that is named in vain" no "$(LIBCLANG_PATH="$world/cpp/usr/lib/llvm-14/lib" finds versioned)"

missing=()
need procps false && need make true
is "what is missing" procps "${missing[*]}"

log="$world/log"
printf '   Compiling a\n    Building [==>   ] 12/345: a, b\r\033[K    Building [===>  ] 13/345: b\r' >"$log"
is "cargo's progress" "13 of 345" "$(how_far "$log")"
printf '        PASS [   0.017s] (   7/1357) automaton-core a/b::c\n' >"$log"
is "the tests' progress" "7 of 1357" "$(how_far "$log")"
printf '   Compiling a v0.1.0 (/elsewhere/1/2)\n' >"$log"
is "no progress" "" "$(how_far "$log")"

{ seq 1 2900 && printf 'error: it broke\n  at a place\n' && seq 1 100; } >"$log"
is "the lines that matter" "error: it broke" "$(matters "$log" | head -n 1)"
is "how many of them" yes "$([ "$(matters "$log" | wc -l)" -le 30 ] && echo yes)"
seq 1 100 >"$log"
is "the last lines else" 86 "$(matters "$log" | head -n 1)"
is "no room" yes "$(remedy 'No space left on device (os error 28)' 2>&1 | grep -q 'disk space' && echo yes)"
is "a hint that is there" "" "$(remedy $'error: x\nhint: do this' 2>&1)"

breaks() { echo working && printf 'error: no such thing\n' && return 3; }
code=0 said="$( (stage "a trial" breaks) 2>&1)" || code=$?
is "the code of a stage" 3 "$code"
for words in "a trial failed after" "    error: no such thing" "$logs/a-trial.log" "hint: "; do
    is "told of a failure: $words" yes "$(grep -qF -- "$words" <<<"$said" && echo yes)"
done
is "what it said else is in the log" "" "$(grep working <<<"$said" || true)"
stage "another trial" true 2>/dev/null
is "the report" yes "$(grep -q ' s  another trial$' <<<"$stage_report" && echo yes)"
alongside "beside" sh -c 'echo $$ >"$0"; exec sleep 300' "$world/pid"
for _ in $(seq 300); do [ -s "$world/pid" ] || sleep 0.1; done
ended
wait "${alongside[beside]}" 2>/dev/null || true
# One that nobody has taken note of yet is a zombie, and as good as gone.
gone() { ! grep -qs '^State:[[:space:]]*[^Z]' "/proc/$(cat "$world/pid")/status"; }
for _ in $(seq 50); do gone || sleep 0.1; done
is "it is gone" gone "$(gone && echo gone)"
alongside "and joined" true && join "and joined" 2>/dev/null
shown="$(script -qec "bash -c '. scripts/machine.sh; stage slow sleep 2'" /dev/null </dev/null)"
is "a stage is one line, written again" yes \
    "$(grep -qE $'\r\033\\[Kbash: slow … [0-9]+ s' <<<"$shown" && echo yes)"
is "and the last of it" "bash: slow: N s" \
    "$(tail -n 1 <<<"$shown" | tr -d '\r' | sed -E $'s/.*\033\\[K//; s/[0-9]+ s/N s/')"

for file in up test; do
    needs="$(grep -nE '^[^#]*\bneed(_[a-z_]+)?\b' "$file" | tail -n 1 | cut -d : -f 1)"
    stages="$(grep -nE '^[^#]*\b(stage|alongside) "' "$file" | head -n 1 | cut -d : -f 1)"
    is "./$file looks for all that it needs first" yes "$([ "$needs" -lt "$stages" ] && echo yes)"
done

# An ordinary user on a machine that asks for a profile, and a sudo that does as it is told.
machine ubuntu etc/apparmor.d/others
mkdir -p "$world/ubuntu/proc/sys/kernel"
echo 1 >"$world/ubuntu/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
id() { echo 1000; }
sudo() {
    [ "$1" != -n ] || shift
    case "$refused" in *" $1 "*) echo "sudo: a password is required" >&2 && return 1 ;; esac
    [ "$1" = apparmor_parser ] || "$@"
}
profiles() { find "$world/ubuntu/etc/apparmor.d" -name 'automaton-*' | wc -l; }
for refused in " install " " apparmor_parser "; do
    code=0 said="$( (allow_user_namespaces /opt/automaton "$world/ubuntu") 2>&1)" || code=$?
    is "the code without$refused" 1 "$code"
    for words in "sudo: a password is required" "error: " "hint: "; do
        is "told without$refused: $words" 1 "$(grep -c "^$words" <<<"$said")"
    done
    is "what is written without$refused" 0 "$(profiles)"
done
refused="" code=0
(allow_user_namespaces /opt/automaton "$world/ubuntu") 2>/dev/null || code=$?
is "the code with a profile" "0 1" "$code $(profiles)"
is "it names both programs" 2 \
    "$(grep -c '^profile .* "/opt/automaton\(-sandbox\)\?" ' "$world"/ubuntu/etc/apparmor.d/automaton-*)"
is "once is enough" "" "$(allow_user_namespaces /opt/automaton "$world/ubuntu" 2>&1)"
[ "$failed" = 0 ]
