#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each under libFuzzer, two at a
# time, from its stored inputs on.
#
#   ci/fuzz.sh [SECONDS [NAME...]]     60 seconds each; all targets
#
# ATTNGUARD_FUZZ_SEED=N makes the same random choices again; without it they
# are new ones. The seed is printed.
#
# Exits 1 when a target crashes, hangs, leaks or runs out of memory: the input
# lies in build/fuzz/found/NAME/, and `build/fuzz/bin/fuzz_NAME FILE` shows it
# again. Put it into tests/fuzz/corpus/NAME/ once it is mended.
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-60}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: ci/fuzz.sh [SECONDS [NAME...]]" >&2
  exit 2
fi
seed=${ATTNGUARD_FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
if ! [[ $seed =~ ^[1-9][0-9]*$ ]]; then
  echo "fuzz: ATTNGUARD_FUZZ_SEED: expected a number from 1 on, got '$seed'" >&2
  exit 2
fi
shift || true
names=("$@")
if ((${#names[@]} == 0)); then
  for source in tests/fuzz/targets/*.cc; do
    names+=("$(basename "$source" .cc)")
  done
fi
for name in "${names[@]}"; do
  if [[ ! -f tests/fuzz/targets/$name.cc ]]; then
    echo "fuzz: no target '$name' in tests/fuzz/targets" >&2
    exit 2
  fi
done

echo "fuzz: seed $seed"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j2

# A fuzzer that finds nothing where something is proves nothing elsewhere.
mkdir -p build/fuzz/found/control
if build/fuzz/bin/fuzz_control -max_total_time=60 -timeout=10 \
  -artifact_prefix=build/fuzz/found/control/ >build/fuzz/control.log 2>&1 ||
  ! grep -q 'the planted fault' build/fuzz/control.log; then
  tail -n 20 build/fuzz/control.log
  echo "fuzz: FAILED: the fault that was planted in tests/fuzz/control.cc was not found"
  exit 1
fi

# A target's own log is shown when it fails; the last line of it otherwise.
fuzz() {
  local name=$1 found=build/fuzz/found/$1 new=build/fuzz/new/$1 dictionary=()
  mkdir -p "$found" "$new"
  if [[ -f tests/fuzz/dictionaries/$name.dict ]]; then
    dictionary=(-dict="tests/fuzz/dictionaries/$name.dict")
  fi
  if ! OMP_NUM_THREADS=1 ASAN_OPTIONS=allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1 \
    "build/fuzz/bin/fuzz_$name" -seed="$seed" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$found/" -print_final_stats=1 \
    "${dictionary[@]}" "$new" "tests/fuzz/corpus/$name" \
    >"build/fuzz/$name.log" 2>&1; then
    tail -n 60 "build/fuzz/$name.log"
    echo "fuzz: FAILED: $name; its input: $(ls "$found")"
    return 1
  fi
  echo "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' \
    "build/fuzz/$name.log") inputs in $seconds s, $(find "$new" -type f | wc -l) that are new"
}
export -f fuzz
export seconds seed
printf '%s\n' "${names[@]}" | xargs -n1 -P2 bash -c 'fuzz "$1"' fuzz
