#!/usr/bin/env bash
# Uses the library as a stranger would: installs a finished build, moves the
# tree, and builds and runs tests/consume/ against it by find_package and by
# pkg-config, and against the sources by FetchContent and add_subdirectory.
#
#   ci/consume_test.sh BUILD_DIR     a build with static or shared libraries
set -euo pipefail

if (($# != 1)) || [[ ! -f $1/CMakeCache.txt ]]; then
  echo "usage: ci/consume_test.sh BUILD_DIR (one that is configured)" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
consumer=$root/tests/consume

cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }
compiler=$(cached CMAKE_CXX_COMPILER)
shared=$(cached BUILD_SHARED_LIBS)
# The same compiler, and the same flags so that a compiler cache can help.
settings=(-G Ninja -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)"
  -DCMAKE_CXX_COMPILER="$compiler" -DBUILD_SHARED_LIBS="${shared:-OFF}")
if command -v ccache >/dev/null; then
  settings+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs quietly; shows what a command said only when it fails.
quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    cat "$work/log"
    echo "consume: failed: $*"
    exit 1
  fi
}

echo "consume: install, and move the tree"
quietly cmake --install "$build" --prefix "$work/stage"
prefix=$work/moved
mv "$work/stage" "$prefix"
if grep -rlF -e "$root" -e "$work/stage" --include=*.cmake --include=*.pc \
  "$prefix"; then
  echo "consume: the files above name paths of this machine's build"
  exit 1
fi

echo "consume: every installed header compiles, with nothing but the standard"
include=$prefix/include/attnguard
(cd "$include" && find . -name '*.h' | sort | sed 's,^\./\(.*\),#include "\1",') \
  >"$work/all_headers.cc"
if [[ ! -s $work/all_headers.cc ]]; then
  echo "consume: no headers were installed"
  exit 1
fi
quietly "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only \
  -I"$include" "$work/all_headers.cc"

echo "consume: by find_package"
quietly cmake -S "$consumer" -B "$work/package" "${settings[@]}" \
  -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$work/package" -j2
"$work/package/consumer"

echo "consume: by pkg-config"
pc=$(dirname "$(find "$prefix" -name attnguard.pc)")
export PKG_CONFIG_PATH=$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
static=(--static)
if [[ $shared == ON ]]; then static=(); fi
read -ra cflags < <(pkg-config --cflags attnguard)
read -ra libs < <(pkg-config "${static[@]}" --libs attnguard)
quietly "$compiler" -std=c++20 "$consumer/main.cc" "${cflags[@]}" "${libs[@]}" \
  -o "$work/by_pkg_config"
LD_LIBRARY_PATH=$(dirname "$pc") "$work/by_pkg_config"

# outcome NAME WORDS: what CTest said of one test.
outcome() {
  if ! grep -qE "Test +#[0-9]+: $1 .*$2" "$work/ctest.log"; then
    cat "$work/ctest.log"
    echo "consume: the test '$1' should be '$2'"
    exit 1
  fi
}

if [[ -x $prefix/bin/attnguard ]]; then
  echo "consume: the installed command"
  quietly "$prefix/bin/attnguard" --version

  echo "consume: attnguard_add_check and the GoogleTest suite, in CTest"
  quietly cmake -S "$consumer/check" -B "$work/check" "${settings[@]}" \
    -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$root/tests/adapters/gtest"
  quietly cmake --build "$work/check" -j2
  ctest --test-dir "$work/check" --output-on-failure >"$work/ctest.log" 2>&1 &&
    { echo "consume: tests of a wrong kernel passed"; exit 1; }
  outcome right Passed
  outcome one_check Passed
  outcome wrong Failed
  outcome nothing_checked Skipped
  outcome nothing_checked_fails Failed
  outcome 'MyAttentionIn/b1_h4x2_q5_kv5_d16_fp32_causal_bottom_right.row_sum' \
    Passed
  outcome 'MyAttentionIn/b1_h1_q9_kv9_d16_fp16_causal_bottom_right.supported' \
    Skipped
fi

# All of it is compiled once more: quickly, as only that is the question.
sources=("${settings[@]}" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
  -DATTNGUARD_SOURCE_DIR="$root"
  -DATTNGUARD_WARNINGS_AS_ERRORS="$(cached ATTNGUARD_WARNINGS_AS_ERRORS)")
echo "consume: by FetchContent, from the sources"
quietly cmake -S "$consumer" -B "$work/fetch" "${sources[@]}"
quietly cmake --build "$work/fetch" -j2 --target consumer
"$work/fetch/consumer"

# objects FOLDER: the files that the consumer is compiled and linked from.
objects() {
  cmake --build "$1" -- -t commands consumer | grep -oE ' -o [^ ]+' |
    sed 's,.*/,,' | sort
}
# FetchContent ends in add_subdirectory: where both compile the same files, one
# build tells of both.
echo "consume: by add_subdirectory, which would build the same"
quietly cmake -S "$consumer" -B "$work/subdirectory" "${sources[@]}" \
  -DATTNGUARD_SUBDIRECTORY=ON
objects "$work/fetch" >"$work/fetched"
objects "$work/subdirectory" >"$work/added"
if ! grep -q . "$work/added" || ! diff "$work/fetched" "$work/added"; then
  echo "consume: add_subdirectory builds something else than FetchContent"
  exit 1
fi
echo "consume: all ways work"
