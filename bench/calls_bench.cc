// Calls and time against the plain method: one perturbation per cut, all
// cuts, each compared with the unperturbed output. Both must accept a correct
// engine and reject a leaking one before anything is timed.
//
//   attnguard_calls_bench
//
// The plain method needs seq_len calls. Beyond kMeasuredInFull keys its time
// is calls x the time of one call measured here, and the counter
// `extrapolated` is 1.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <vector>

#include "bench/engines.h"
#include "guard/pipeline.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

constexpr std::int64_t kMeasuredInFull = 1024;
constexpr std::int64_t kSampledCuts = 4;

std::string problem_line(std::int64_t length) {
  return "num_heads=1 seq_len=" + std::to_string(length) +
         " head_dim=64 dtype=fp32 mask=causal_top_left";
}

// The plain method on fp32 BHSD arrays with one head.
class PlainMethod {
 public:
  PlainMethod(const Engine& engine, const Problem& problem)
      : engine_(engine),
        problem_(problem),
        length_(problem.max_len_q()),
        dim_(problem.head_dim_v) {
    const auto size = static_cast<std::size_t>(length_ * dim_);
    for (auto* tensor : {&query_, &key_, &value_, &base_, &output_})
      tensor->resize(size);
    fill(0, 1);
    run(base_);
  }

  // True when no row before the cut moved.
  bool holds_at(std::int64_t cut) {
    fill(cut, 2);
    run(output_);
    fill(cut, 1);
    const auto end = base_.begin() + cut * dim_;
    return std::equal(base_.begin(), end, output_.begin());
  }

  std::int64_t calls() const { return calls_; }

 private:
  void fill(std::int64_t from, std::uint64_t seed) {
    std::vector<double> row(static_cast<std::size_t>(dim_));
    for (std::int64_t i = from; i < length_; ++i)
      for (auto [role, tensor] : {std::pair{TensorRole::kQuery, &query_},
                                  {TensorRole::kKey, &key_},
                                  {TensorRole::kValue, &value_}}) {
        fill_random_row(seed, role, 0, 0, i, 1, dim_, row.data());
        std::copy(row.begin(), row.end(), tensor->begin() + i * dim_);
      }
  }

  void run(std::vector<float>& output) {
    const auto view = [&](std::vector<float>& tensor, TensorRole role) {
      return TensorView{reinterpret_cast<std::byte*>(tensor.data()),
                        Dtype::kFp32, problem_.shape(role),
                        problem_.strides(role)};
    };
    AttentionCall call;
    call.problem = &problem_;
    call.query = view(query_, TensorRole::kQuery);
    call.key = view(key_, TensorRole::kKey);
    call.value = view(value_, TensorRole::kValue);
    call.output = view(output, TensorRole::kOutput);
    if (!run_engine(engine_, call).ok()) std::abort();
    ++calls_;
  }

  const Engine& engine_;
  const Problem& problem_;
  std::int64_t length_, dim_;
  std::int64_t calls_ = 0;
  std::vector<float> query_, key_, value_, base_, output_;
};

bool plain_method_rejects_a_leak() {
  const Engine leaking = open_engine("builtin:causal_off_by_one").value();
  const Problem problem = Problem::parse(problem_line(64)).value();
  PlainMethod plain(leaking, problem);
  return !plain.holds_at(32);
}

void plain_all_cuts(benchmark::State& state) {
  const Engine engine = open_engine("builtin:tiled").value();
  const std::int64_t length = state.range(0);
  const Problem problem = Problem::parse(problem_line(length)).value();
  if (!plain_method_rejects_a_leak()) {
    state.SkipWithError("the plain method misses a leak");
    return;
  }
  const bool in_full = length <= kMeasuredInFull;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    PlainMethod plain(engine, problem);
    const std::int64_t step = in_full ? 1 : length / kSampledCuts;
    for (std::int64_t cut = 1; cut < length; cut += step)
      if (!plain.holds_at(cut)) {
        state.SkipWithError("a correct engine was rejected");
        return;
      }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    state.SetIterationTime(seconds / static_cast<double>(plain.calls()) *
                           static_cast<double>(length));
  }
  state.counters["calls"] = static_cast<double>(length);
  state.counters["extrapolated"] = in_full ? 0 : 1;
}

void guard_checks(benchmark::State& state,
                  const std::vector<std::string>& checks) {
  const Engine engine = open_engine("builtin:tiled").value();
  const Engine leaking = open_engine("builtin:causal_off_by_one").value();
  const Problem problem = Problem::parse(problem_line(state.range(0))).value();
  const Problem small = Problem::parse(problem_line(64)).value();
  const RunOptions options{.checks = checks, .draw_maps = false};
  if (verify_problem(leaking, small, {}, options).verdict !=
      Verdict::kViolation) {
    state.SkipWithError("the guard misses a leak");
    return;
  }
  double calls = 0;
  for (auto _ : state) {
    const ProblemResult result = verify_problem(engine, problem, {}, options);
    if (result.verdict != Verdict::kPass) {
      state.SkipWithError("a correct engine was rejected");
      return;
    }
    state.SetIterationTime(result.engine_seconds + result.guard_seconds);
    calls = static_cast<double>(result.engine_calls);
  }
  state.counters["calls"] = calls;
}

void lengths(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(4)
      ->Range(256, 16384)
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK(plain_all_cuts)->Apply(lengths);
BENCHMARK_CAPTURE(guard_checks, visibility,
                  std::vector<std::string>{"visibility"})
    ->Apply(lengths);
BENCHMARK_CAPTURE(guard_checks, all, std::vector<std::string>{})
    ->Apply(lengths);

}  // namespace
}  // namespace attnguard

BENCHMARK_MAIN();
