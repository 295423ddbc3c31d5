// builtin:tiled against ggml's CPU flash attention: is the built-in engine
// fast enough to be a fair example? Outputs are compared before timing, and
// the ratio is taken inside one run, calls interleaved.
//
//   attnguard_kernel_bench
//
// `ratio` is the median time of builtin:tiled over that of ggml:flash.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "bench/engines.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

// Random fp32 BHSD tensors of a problem, and one output per engine.
class Tensors {
 public:
  explicit Tensors(const Problem& problem) : problem_(problem) {
    for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                            TensorRole::kValue, TensorRole::kOutput}) {
      auto& data = data_[static_cast<std::size_t>(role)];
      data.resize(static_cast<std::size_t>(problem.extent(role)));
      if (role == TensorRole::kOutput) continue;
      const Shape4 shape = problem.shape(role);
      const TensorView view = view_of(role);
      std::vector<double> row(static_cast<std::size_t>(shape[3]));
      for (std::int64_t h = 0; h < shape[1]; ++h)
        for (std::int64_t s = 0; s < shape[2]; ++s) {
          fill_random_row(1, role, 0, h, s, 1, shape[3], row.data());
          view.store_row(0, h, s, 0, shape[3], row.data());
        }
    }
  }

  double time(const Engine& engine) {
    AttentionCall call;
    call.problem = &problem_;
    call.query = view_of(TensorRole::kQuery);
    call.key = view_of(TensorRole::kKey);
    call.value = view_of(TensorRole::kValue);
    call.output = view_of(TensorRole::kOutput);
    const auto start = std::chrono::steady_clock::now();
    if (!run_engine(engine, call).ok()) std::abort();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  const std::vector<float>& output() const {
    return data_[static_cast<std::size_t>(TensorRole::kOutput)];
  }

 private:
  TensorView view_of(TensorRole role) {
    auto& data = data_[static_cast<std::size_t>(role)];
    return {reinterpret_cast<std::byte*>(data.data()), Dtype::kFp32,
            problem_.shape(role), problem_.strides(role)};
  }

  const Problem& problem_;
  std::vector<float> data_[4];
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void tiled_against_ggml(benchmark::State& state, const std::string& mask) {
  const Result<Engine> ggml = open_engine("ggml:flash");
  if (!ggml.ok()) {
    state.SkipWithError(("skipped: " + ggml.status().message()).c_str());
    return;
  }
  const Engine tiled = open_engine("builtin:tiled").value();
  const Problem problem =
      Problem::parse("num_heads=8 seq_len=2048 head_dim=64 mask=" + mask)
          .value();
  Tensors tensors(problem);
  tensors.time(ggml.value());
  const std::vector<float> expected = tensors.output();
  tensors.time(tiled);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(expected[i] - tensors.output()[i]) < 1e-3f)) {
      state.SkipWithError("the outputs differ: nothing is timed");
      return;
    }
  std::vector<double> tiled_times, ggml_times;
  for (auto _ : state) {
    tiled_times.push_back(tensors.time(tiled));
    ggml_times.push_back(tensors.time(ggml.value()));
    state.SetIterationTime(tiled_times.back());
  }
  state.counters["ggml_ms"] = 1e3 * median(ggml_times);
  state.counters["tiled_ms"] = 1e3 * median(tiled_times);
  state.counters["ratio"] = median(tiled_times) / median(ggml_times);
}

BENCHMARK_CAPTURE(tiled_against_ggml, full, std::string("full"))
    ->UseManualTime()
    ->Iterations(9)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(tiled_against_ggml, causal,
                  std::string("causal_bottom_right"))
    ->UseManualTime()
    ->Iterations(9)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attnguard

BENCHMARK_MAIN();
