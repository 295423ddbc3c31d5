#!/usr/bin/env bash
# Makes sure that what a build needs is there; installs it where apt-get can.
#
#   ci/setup.sh              everything to build, test and bench
#   ci/setup.sh --minimal    only what the library and the command need
#   ci/setup.sh --engines    everything, LibTorch, npm to fetch real engines, what
#                            reports are tested with (Chromium, jsonschema,
#                            xmllint), and clang with libFuzzer
#
# Looks before it installs: when nothing is missing, nothing is run, and no
# network or root is needed. Exits 1 with the list when something is missing
# that it cannot install.
set -euo pipefail

want_tests=1
want_engines=0
modules=""
for argument in "$@"; do
  case $argument in
    --minimal) want_tests=0 ;;
    --engines) want_engines=1 ;;
    *)
      echo "usage: ci/setup.sh [--minimal | --engines]" >&2
      exit 2
      ;;
  esac
done

# Debian package, and the command that shows it is there.
commands='
g++            g++
cmake          cmake
ninja-build    ninja
'
# Debian package, and a header that shows it is there.
headers='
libyaml-cpp-dev       yaml-cpp/yaml.h
libcli11-dev          CLI/CLI.hpp
nlohmann-json3-dev    nlohmann/json.hpp
libfmt-dev            fmt/core.h
libpugixml-dev        pugixml.hpp
libpng-dev            png.h
libonnx-dev           onnx/onnx_pb.h
libprotobuf-dev       google/protobuf/message.h
'
if ((want_tests)); then
  commands+='
git            git
pkg-config     pkg-config
clang-format   clang-format
prometheus     promtool
groff-base     groff
'
  headers+='
libgtest-dev          gtest/gtest.h
libgmock-dev          gmock/gmock.h
libbenchmark-dev      benchmark/benchmark.h
prometheus-cpp-dev    prometheus/exposer.h
'
fi
clang_headers=""
if ((want_engines)); then
  commands+='
clang          clang++
npm            npm
nodejs         node
python3        python3
chromium       chromium
libxml2-utils  xmllint
'
  headers+='
libtorch-dev          torch/csrc/Export.h
'
  # Debian package, and a header of its that clang finds.
  clang_headers='
libclang-rt-dev       fuzzer/FuzzedDataProvider.h
libomp-dev            omp.h
'
  # Debian package, and a module of Debian's Python that shows it is there.
  modules='
python3-jsonschema    jsonschema
'
fi
# Good to have: a failure to install these is no failure.
optional_commands='
ccache         ccache
'

missing_commands() {
  local package command
  while read -r package command; do
    if [[ -n $package ]] && ! command -v "$command" >/dev/null; then
      echo "$package"
    fi
  done <<<"$1"
}

# missing_headers COMPILER TABLE
#
# Asks the compiler, so that libraries from anywhere count. Without a compiler
# all of them are missing as far as anyone can tell.
missing_headers() {
  local compiler=$1 package header source=""
  while read -r package header; do
    if [[ -n $package ]]; then
      source+="#if !__has_include(<$header>)"$'\n'"missing $package"$'\n#endif\n'
    fi
  done <<<"$2"
  if command -v "${compiler%% *}" >/dev/null; then
    # shellcheck disable=SC2086  # CXX may hold arguments
    $compiler -E -x c++ -std=c++20 - <<<"$source" | sed -n 's/^missing //p'
  else
    sed -n 's/^missing //p' <<<"$source"
  fi
}

missing_modules() {
  local package module
  while read -r package module; do
    if [[ -n $package ]] && ! /usr/bin/python3 -c "import $module" 2>/dev/null; then
      echo "$package"
    fi
  done <<<"$modules"
}

all_missing() {
  missing_commands "$commands"
  missing_headers "${CXX:-g++}" "$headers"
  missing_headers clang++ "$clang_headers"
  missing_modules
}

missing=$(all_missing)
optional=$(missing_commands "$optional_commands")
missing=${missing//$'\n'/ }

if [[ -z $missing && -z $optional ]]; then
  echo "nothing is missing"
  exit 0
fi

give_up() {
  echo "setup: missing: $missing" >&2
  echo "setup: $1" >&2
  echo "setup: these are Debian's names; install them, then run this again" >&2
  exit 1
}

as_root=()
can_install=1
reason=""
if ! command -v apt-get >/dev/null; then
  can_install=0 reason="there is no apt-get here"
elif ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    can_install=0 reason="installing needs root, and there is no sudo"
  elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  elif [[ -t 0 && -z ${CI:-} ]]; then
    as_root=(sudo)
  else
    can_install=0 reason="sudo asks for a password, and nobody is here to give it"
  fi
fi

if ((!can_install)); then
  if [[ -n $missing ]]; then give_up "$reason"; fi
  echo "nothing is missing but $optional, which would make rebuilds faster"
  exit 0
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get \
    -o Dpkg::Use-Pty=0 -qq "$@" </dev/null
}

echo "installing: ${missing:+$missing }$optional"
if ! apt update; then
  if [[ -n $missing ]]; then
    give_up "apt-get update failed; is there a network?"
  fi
  echo "could not install $optional; going on without"
  exit 0
fi
if [[ -n $missing ]]; then
  # shellcheck disable=SC2086  # a list of words
  apt install -y --no-install-recommends $missing ||
    give_up "apt-get install failed; its message is above"
fi
if [[ -n $optional ]]; then
  # shellcheck disable=SC2086
  apt install -y --no-install-recommends $optional ||
    echo "could not install $optional; going on without"
fi

missing=$(all_missing)
missing=${missing//$'\n'/ }
if [[ -n $missing ]]; then
  give_up "apt-get succeeded, but these are still not found"
fi
echo "everything is there"
