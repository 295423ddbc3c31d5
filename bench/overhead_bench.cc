// The guard's own time as a share of the engine's time: everything but the
// engine's calls (filling tensors, poisoning, comparing, judging), for the
// full set of checks on one problem. The verdict is verified on every
// iteration: a share measured on a failing run would mean nothing.
//
//   attnguard_overhead_bench
//
// guard_share is guard seconds / engine seconds inside the same run; calls is
// the number of engine calls.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/engines.h"
#include "guard/pipeline.h"

namespace attnguard {
namespace {

void guard_share(benchmark::State& state, const std::string& spec,
                 const std::string& line) {
  const Result<Engine> engine = open_engine(spec);
  if (!engine.ok()) {
    state.SkipWithError(("skipped: " + engine.status().message()).c_str());
    return;
  }
  const Result<Problem> problem = Problem::parse(line);
  const Settings settings = default_policy().resolve(engine.value().name);
  double engine_seconds = 0, guard_seconds = 0, calls = 0;
  for (auto _ : state) {
    const ProblemResult result =
        verify_problem(engine.value(), problem.value(), settings);
    if (result.verdict != Verdict::kPass) {
      state.SkipWithError("the engine did not pass: nothing is timed");
      return;
    }
    state.SetIterationTime(result.engine_seconds + result.guard_seconds);
    engine_seconds += result.engine_seconds;
    guard_seconds += result.guard_seconds;
    calls = static_cast<double>(result.engine_calls);
  }
  state.counters["guard_share"] = guard_seconds / engine_seconds;
  state.counters["calls"] = calls;
}

constexpr char kPrefill[] =
    "num_heads=8 seq_len=2048 head_dim=64 dtype=fp32 mask=";

void register_all() {
  for (const char* spec : {"builtin:tiled", "ggml:flash"})
    for (const char* mask : {"full", "causal_bottom_right"})
      benchmark::RegisterBenchmark(
          (std::string("guard_share/") + spec + "/" + mask).c_str(),
          [spec, mask](benchmark::State& state) {
            guard_share(state, spec, std::string(kPrefill) + mask);
          })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(3);
}

}  // namespace
}  // namespace attnguard

int main(int argc, char** argv) {
  attnguard::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
