// What the live guard's hook costs LibTorch: the same model runs without and
// with it, in turn.
//
//   overhead_percent   how much longer the model took, of all iterations
//   looked_at          attention calls that were sampled, of one run
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "adapters/libtorch/examples/model.h"
#include "adapters/libtorch/live_hook.h"
#include "guard/runtime/guard.h"

namespace attnguard {
namespace {

using libtorch::LiveHook;
using libtorch::LiveHookOptions;

examples::ModelOptions model_options() {
  examples::ModelOptions options;
  options.heads = 8;
  options.head_dim = 64;
  options.prompt = 128;
  options.chunk = 32;
  options.steps = 32;
  return options;
}

double run(benchmark::State& state) {
  const examples::ModelResult result = examples::run_model(model_options());
  if (!result.failure.empty()) state.SkipWithError(result.failure.c_str());
  return result.seconds;
}

void run_with(benchmark::State& state, std::int64_t sample_every, bool budget,
              double probability) {
  RuntimePolicy policy;
  if (!budget) policy.max_overhead.reset();
  RuntimePatch patch;
  patch.sample_every = sample_every;
  policy.patches.push_back(patch);
  auto guard = Guard::create(policy);
  double without = 0, with = 0, sampled = 0;
  run(state);
  std::int64_t rounds = 0;
  for (auto _ : state) {
    if (++rounds % 2 == 0) without += run(state);
    double seconds = 0;
    {
      LiveHookOptions options;
      options.probability = probability;
      auto hook = LiveHook::start(*guard.value(), options);
      if (!hook.ok()) {
        state.SkipWithError(hook.status().message().c_str());
        return;
      }
      seconds = run(state);
      sampled += static_cast<double>(hook.value()->counters().sampled);
    }
    if (rounds % 2 != 0) without += run(state);
    with += seconds;
    state.SetIterationTime(seconds);
  }
  state.counters["overhead_percent"] = 100 * (with - without) / without;
  state.counters["looked_at"] = sampled / static_cast<double>(rounds);
}

void BM_Declining(benchmark::State& state) { run_with(state, 0, false, 1); }
void BM_DecliningOneIn100(benchmark::State& state) {
  run_with(state, 0, false, 0.01);
}
void BM_OneIn1000Budget(benchmark::State& state) {
  run_with(state, 1000, true, 1);
}
void BM_OneIn20(benchmark::State& state) { run_with(state, 20, false, 1); }
void BM_All(benchmark::State& state) { run_with(state, 1, false, 1); }

BENCHMARK(BM_Declining)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecliningOneIn100)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_OneIn1000Budget)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_OneIn20)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BM_All)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attnguard
