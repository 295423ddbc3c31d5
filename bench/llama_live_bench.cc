// What the live guard's hook costs llama.cpp: the same requests are served
// without and with it, in turn, and only llama_decode is timed.
//
//   overhead_percent   how much longer llama_decode took, of all iterations
//   looked_at          attention calls that were sampled, of one serving
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "adapters/llama_cpp/examples/server.h"
#include "guard/runtime/guard.h"
#include "tests/support/tiny_gguf.h"

namespace attnguard {
namespace {

using examples::Corruption;
using examples::Fault;
using examples::ServerOptions;
using llama_cpp::LiveHook;

// Small, and yet most of the time goes into its arithmetic.
const std::string& model_path() {
  static const std::string path = [] {
    TinyGguf model = tiny_gguf("llama");
    model.heads = 8;
    model.head_dim = 64;
    model.layers = 4;
    model.feed_forward = 1024;
    std::string file = "/tmp/attnguard_live_bench.gguf";
    const Status status = write_tiny_gguf(model, 1, file);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::exit(1);
    }
    return file;
  }();
  return path;
}

RuntimePolicy policy_of(std::int64_t sample_every, bool budget) {
  RuntimePolicy policy;
  if (!budget) policy.max_overhead.reset();
  RuntimePatch patch;
  patch.sample_every = sample_every;
  policy.patches.push_back(patch);
  return policy;
}

double seconds_of(const ServerOptions& options, LiveHook* hook,
                  benchmark::State& state) {
  Corruption none(Fault::kNone, 0, 0);
  const Result<examples::ServerResult> served =
      examples::serve(options, hook, none);
  if (served.ok()) return served.value().seconds;
  state.SkipWithError(served.status().message().c_str());
  return 0;
}

void serve_with(benchmark::State& state, std::int64_t sample_every,
                bool budget) {
  ServerOptions options;
  options.model = model_path();
  options.libraries = ATTNGUARD_LLAMA_CPP_LIB;
  options.flash = state.range(0) != 0;
  auto guard = Guard::create(policy_of(sample_every, budget));
  LiveHook hook(*guard.value());
  double without = 0, with = 0;
  seconds_of(options, nullptr, state);  // The first one loads the libraries.
  std::int64_t rounds = 0;
  for (auto _ : state) {
    // In both orders, as clocks and caches drift.
    if (++rounds % 2 == 0) without += seconds_of(options, nullptr, state);
    const double seconds = seconds_of(options, &hook, state);
    if (rounds % 2 != 0) without += seconds_of(options, nullptr, state);
    with += seconds;
    state.SetIterationTime(seconds);
  }
  state.counters["overhead_percent"] = 100 * (with - without) / without;
  state.counters["looked_at"] = static_cast<double>(hook.counters().sampled) /
                                static_cast<double>(rounds);
}

void BM_Declining(benchmark::State& state) { serve_with(state, 0, false); }
void BM_OneIn1000Budget(benchmark::State& state) {
  serve_with(state, 1000, true);
}
void BM_OneIn20(benchmark::State& state) { serve_with(state, 20, false); }
void BM_All(benchmark::State& state) { serve_with(state, 1, false); }

#define ATTNGUARD_LIVE_BENCH(name)                                          \
  BENCHMARK(name)->ArgName("flash")->Arg(1)->Arg(0)->UseManualTime()->Unit( \
      benchmark::kMillisecond)
ATTNGUARD_LIVE_BENCH(BM_Declining);
ATTNGUARD_LIVE_BENCH(BM_OneIn1000Budget);
ATTNGUARD_LIVE_BENCH(BM_OneIn20);
ATTNGUARD_LIVE_BENCH(BM_All);

}  // namespace
}  // namespace attnguard
