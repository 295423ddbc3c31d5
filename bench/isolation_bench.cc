// What it costs to run an engine in a process of its own: the time of one call
// of builtin:tiled on a tiny problem, in this process and in another. The
// engine's work is the same; the difference is the way there and back. The
// outputs of both are verified to be the same bits before anything is timed.
//
//   isolation_bench
//
// added_us is the median isolated call less the median direct call, in
// microseconds; the calls alternate, so that both see the same machine.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "bench/engines.h"
#include "ci/isolate/isolated_engine.h"
#include "ci/isolate/worker.h"
#include "guard/base/rng.h"
#include "guard/engine/engine.h"

namespace attnguard {
namespace {

constexpr char kSpec[] = "builtin:tiled";
constexpr int kCallsPerRound = 1000;
constexpr std::size_t kMargin = 4096;

// The tensors of one problem, in the memory of one engine.
class Tensors {
 public:
  Tensors(const Engine& engine, const Problem& problem)
      : engine_(engine),
        problem_(problem),
        memory_(engine.memory ? engine.memory : host_memory()) {
    for (TensorRole role : kRoles) {
      const std::size_t bytes = bytes_of(role);
      const Result<void*> block = memory_->allocate_guarded(bytes, kMargin);
      if (!block.ok()) std::abort();
      blocks_.push_back(block.value());
      auto* elements = reinterpret_cast<float*>(
          static_cast<std::byte*>(block.value()) + kMargin);
      for (std::size_t i = 0; i < bytes / sizeof(float); ++i)
        elements[i] = static_cast<float>(
            near_normal(derive_seed(static_cast<std::uint64_t>(role), i)));
    }
    call_.problem = &problem_;
    call_.query = view(TensorRole::kQuery);
    call_.key = view(TensorRole::kKey);
    call_.value = view(TensorRole::kValue);
    call_.output = view(TensorRole::kOutput);
  }
  ~Tensors() {
    for (void* block : blocks_) memory_->release(block);
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // Microseconds of one call.
  double run() {
    const auto start = std::chrono::steady_clock::now();
    if (!run_engine(engine_, call_).ok()) std::abort();
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now() - start)
        .count();
  }

  bool same_output(const Tensors& other) const {
    return std::memcmp(call_.output.data, other.call_.output.data,
                       bytes_of(TensorRole::kOutput)) == 0;
  }

 private:
  static constexpr TensorRole kRoles[] = {TensorRole::kQuery, TensorRole::kKey,
                                          TensorRole::kValue,
                                          TensorRole::kOutput};

  std::size_t bytes_of(TensorRole role) const {
    return static_cast<std::size_t>(problem_.extent(role)) * sizeof(float);
  }
  TensorView view(TensorRole role) const {
    return {static_cast<std::byte*>(blocks_[static_cast<std::size_t>(role)]) +
                kMargin,
            Dtype::kFp32, problem_.shape(role), problem_.strides(role)};
  }

  const Engine& engine_;
  const Problem& problem_;
  std::shared_ptr<Memory> memory_;
  std::vector<void*> blocks_;
  AttentionCall call_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

void call(benchmark::State& state, const std::string& line) {
  const Result<Problem> problem = Problem::parse(line);
  const Result<Engine> direct = open_engine(kSpec);
  const Result<Engine> isolated = open_isolated(kSpec, {});
  if (!isolated.ok()) {
    state.SkipWithError(isolated.status().message().c_str());
    return;
  }
  Tensors own(direct.value(), problem.value());
  Tensors shared(isolated.value(), problem.value());
  own.run();
  shared.run();
  if (!own.same_output(shared)) {
    state.SkipWithError("the outputs differ: nothing is timed");
    return;
  }
  std::vector<double> direct_us, isolated_us;
  for (auto _ : state) {
    double sum = 0;
    for (int n = 0; n < kCallsPerRound; ++n) {
      direct_us.push_back(own.run());
      isolated_us.push_back(shared.run());
      sum += isolated_us.back();
    }
    state.SetIterationTime(sum / 1e6);
  }
  state.counters["direct_us"] = median(direct_us);
  state.counters["isolated_us"] = median(isolated_us);
  state.counters["added_us"] = median(isolated_us) - median(direct_us);
}

void register_all() {
  const auto add = [](const char* name, const char* line) {
    benchmark::RegisterBenchmark(
        name, [line](benchmark::State& state) { call(state, line); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(5);
  };
  add("isolated_call/tiny",
      "num_heads=2 seq_len=8 head_dim=16 mask=causal_bottom_right");
  add("isolated_call/small",
      "num_heads=4 seq_len=64 head_dim=64 mask=causal_bottom_right");
}

Result<Engine> open(const std::string& spec) { return open_engine(spec); }

}  // namespace
}  // namespace attnguard

int main(int argc, char** argv) {
  // This program is its own worker.
  if (attnguard::is_worker(argc, argv))
    return attnguard::run_worker(argc, argv, attnguard::open);
  attnguard::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
