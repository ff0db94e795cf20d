# Functions that the scripts and .ci/run share by sourcing this file. It needs bash, and a Debian or all packages installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$(nproc 2>/dev/null || echo 2)

say() { printf '\n== %s\n' "$*"; }

has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif has sudo; then
        sudo "$@"
    else
        echo "$0: not root, and sudo is missing; as root, run: $*" >&2
        return 1
    fi
}

# Returns 0 if clang can build a program with libFuzzer.
can_fuzz() {
    has clang && has clang++ || return 1
    echo 'int LLVMFuzzerTestOneInput(const char *b, unsigned long n); int LLVMFuzzerTestOneInput(const char *b, unsigned long n) {
              return b && n == 1; }' | clang -x c - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null
}

# Prints the missing Debian packages for "library" (the library and the command), "tests" (also the tests), "fuzz", "format" or
# "docs".
missing_packages() {
    local tests=${1:-library}
    if [ "$tests" = fuzz ]; then
        can_fuzz || echo clang libclang-rt-14-dev
        return
    fi
    if [ "$tests" = format ]; then
        has clang-format-14 || echo clang-format-14
        return
    fi
    if [ "$tests" = docs ]; then
        has doxygen || echo doxygen
        python3 -c 'import ensurepip' 2>/dev/null || echo python3 python3-venv
        return
    fi
    has cmake || echo cmake
    has make || echo make
    has gcc || has cc || echo gcc libc6-dev
    if ! has pkg-config; then
        echo pkg-config libyaml-dev zlib1g-dev
        [ "$tests" != tests ] || echo libgtest-dev
    else
        pkg-config --exists yaml-0.1 || echo libyaml-dev
        pkg-config --exists zlib || echo zlib1g-dev
        [ "$tests" != tests ] || pkg-config --exists gtest || echo libgtest-dev
    fi
    [ "$tests" != tests ] || has g++ || echo g++
    [ "$tests" != tests ] || has_pytest || echo python3 python3-pytest
}

# Returns 0 if one of the Pythons of tests/python/CMakeLists.txt has pytest.
has_pytest() {
    python3 -c 'import pytest' 2>/dev/null || /usr/bin/python3 -c 'import pytest' 2>/dev/null
}

install_missing() {
    local packages
    packages=$(missing_packages "$1" | tr '\n' ' ')
    [ -n "${packages// /}" ] || return 0
    if ! has apt-get; then
        echo "$0: missing packages (Debian names), and no apt-get: $packages" >&2
        return 1
    fi
    say "Installing $packages"
    as_root apt-get update -qq </dev/null
    # shellcheck disable=SC2086 -- one word a package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages </dev/null
}

# configure_and_build PRESET [OPTION...] configures with the options of cmake, and builds.
configure_and_build() {
    local preset=$1
    shift
    say "Building ($preset)"
    cmake --preset "$preset" "$@" && cmake --build --preset "$preset" -j "$jobs"
}
