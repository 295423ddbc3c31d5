#!/usr/bin/env bash
# A first look, in two runs: a correct kernel passes, one whose softmax runs
# over the wrong axis is caught.
#
#   ci/check.sh
#
# Builds the command (build/release) first. Exits 0 only if both runs end as
# they should.
set -euo pipefail

cd "$(dirname "$0")/.."

ci/setup.sh --minimal
echo "building the attnguard command in build/release ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset release && cmake --build --preset release -j2; } \
  >"$log" 2>&1; then
  cat "$log"
  echo "check: the build failed"
  exit 1
fi

# run EXPECTED_CODE ENGINE
run() {
  local expected=$1 engine=$2 code=0
  echo
  echo "\$ attnguard check --engine $engine"
  build/release/bin/attnguard check --engine "$engine" || code=$?
  echo "(exit code $code)"
  if ((code != expected)); then
    echo
    echo "check: $engine ended with exit code $code, expected $expected"
    exit 1
  fi
}

run 0 builtin:tiled
run 1 builtin:wrong_axis

echo
echo "check: builtin:tiled, a correct kernel, passed; builtin:wrong_axis," \
  "whose softmax runs over the query axis, was caught"
