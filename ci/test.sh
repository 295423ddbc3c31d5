#!/usr/bin/env bash
# Everything that must hold, in the order in which it fails fastest.
#
#   ci/test.sh              needs nothing but Debian's packages
#   ci/test.sh --engines    fetches real engines first, and requires them; fuzzes
#   ci/test.sh --quick      no sanitizers, no install test
#
# Stops at the first step that fails, with its name and a non-zero exit code.
set -euo pipefail

cd "$(dirname "$0")/.."

engines=0
quick=0
for argument in "$@"; do
  case $argument in
    --engines) engines=1 ;;
    --quick) quick=1 ;;
    *)
      echo "usage: ci/test.sh [--engines] [--quick]" >&2
      exit 2
      ;;
  esac
done

export CXX=${CXX:-g++}
export CC=${CC:-gcc}

# step NAME COMMAND ...
step() {
  local name=$1 start=$SECONDS
  shift
  echo "==> $name"
  if ! "$@"; then
    echo "==> FAILED: $name (after $((SECONDS - start)) s)"
    exit 1
  fi
  echo "==> $name: done in $((SECONDS - start)) s"
}

build() {
  cmake --preset "$1" && cmake --build --preset "$1" -j2
}

# run_tests PRESET [ctest arguments]
run_tests() {
  local preset=$1 status=0
  shift
  # Two tests at a time share the cores: threads that wait must not spin.
  OMP_WAIT_POLICY=passive ctest --preset "$preset" -j2 --no-tests=error "$@" || status=$?
  # Tests that lack their engine say so; ctest itself keeps that to its log.
  grep -ohE 'skipped: .* not found' \
    "build/$preset/Testing/Temporary/LastTest.log" | sort -u || true
  # Said again at the end, where a log of a thousand tests is read.
  if ((status != 0)); then
    echo "==> what the failed tests say when they run alone:"
    ctest --preset "$preset" --rerun-failed "$@" || true
  fi
  return "$status"
}

# Waits of OpenMP's own threads are unknown to the sanitizer: one thread each.
# Tests of forks start threads in the child, which it does not follow closely.
test_threads() {
  OMP_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 \
    build/ci-tsan/bin/live_thread_tests --gtest_brief=1
}

setup=(ci/setup.sh)
if ((engines)); then setup+=(--engines); fi
step "set up" "${setup[@]}"
step "dependency direction" ci/check_layers.sh
step "format" ci/format.sh

# What the set-up installed must be found by the tests.
export ATTNGUARD_REQUIRE_ENGINES=promtool,groff
if ((engines)); then
  step "fetch engines" ci/fetch_engines.sh
  ATTNGUARD_REQUIRE_ENGINES+=,ggml,onnxruntime,libtorch,schemas,chromium
fi

step "build, warnings are errors" build ci-release
if ((quick)); then
  step "test" run_tests ci-release -LE slow
  echo "==> all quick steps passed in $SECONDS s"
  exit 0
fi
step "build with sanitizers" build ci-asan
step "test with sanitizers" run_tests ci-asan -LE scripts
step "test" run_tests ci-release
step "build for the thread sanitizer" build ci-tsan
step "test with the thread sanitizer" test_threads
# One seed, so that a change is judged by what it changes.
if ((engines)); then step "fuzz" env ATTNGUARD_FUZZ_SEED=1 ci/fuzz.sh 60; fi
echo "==> all steps passed in $SECONDS s"
