#include "ci/run/shards.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "ci/run/text_file.h"
#include "guard/base/text.h"
#include "guard/report/read_json_report.h"

namespace attnguard {
namespace {

constexpr double kProblemCost = 1e6;  // What every problem costs.
constexpr double kElementCost = 20;   // Filling and judging a channel.
constexpr std::int64_t kMostShards = 10000;

// Copies of each tensor at a time: the engine's, what was there before, the
// probe's source, another call to compare with. Measured: 1.8 of fp32 tensors,
// 4.3 of fp16 ones, which are compared in larger types.
constexpr std::int64_t kCopies = 5;
constexpr std::int64_t kProgramBytes = 16 << 20;

std::int64_t elements(const Problem& problem) {
  std::int64_t sum = 0;
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput})
    sum += problem.extent(role);
  return sum;
}

std::int64_t scores(const Problem& problem) {
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    sum += problem.len_q(b) * problem.len_kv(b);
  return sum * problem.num_heads;
}

Result<ShardOfRun> shard_of(const std::string& where, const std::string& index,
                            const std::string& count, std::int64_t first) {
  const auto own = parse_int(index), all = parse_int(count);
  if (!all || *all < 1 || *all > kMostShards || !own || *own < first ||
      *own >= *all + first)
    return invalid_argument(where + ": '" + index + "' of '" + count +
                            "' is no shard; expected " + std::to_string(first) +
                            " to the number of shards" +
                            (first == 0 ? " less one" : ""));
  return ShardOfRun{*own - first + 1, *all, 0};
}

}  // namespace

double estimated_cost(const Problem& problem) {
  const double products =
      static_cast<double>(scores(problem)) *
      static_cast<double>(problem.head_dim_qk + problem.head_dim_v);
  return kProblemCost + products +
         kElementCost * static_cast<double>(elements(problem));
}

std::int64_t estimated_bytes(const Problem& problem, bool gives_weights) {
  std::int64_t bytes = kProgramBytes;
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput})
    bytes += kCopies * problem.extent(role) *
             static_cast<std::int64_t>(dtype_info(problem.dtype_of(role)).size);
  if (gives_weights)
    bytes += scores(problem) * static_cast<std::int64_t>(sizeof(float));
  return bytes;
}

Result<MeasuredCosts> MeasuredCosts::read(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text.ok()) return text.status();
  const Result<JsonReport> report = read_json_report(text.value());
  if (!report.ok())
    return invalid_argument(path + ": " + report.status().message());
  return MeasuredCosts(report.value().runs);
}

MeasuredCosts::MeasuredCosts(const std::vector<RunResult>& runs) {
  double seconds = 0, estimates = 0;
  for (const RunResult& run : runs)
    for (const ProblemResult& result : run.problems) {
      const double own = result.engine_seconds + result.guard_seconds;
      if (result.unchecked || !(own > 0)) continue;
      seconds_[{run.engine, result.problem_line}] = own;
      seconds += own;
      estimates += estimated_cost(result.problem);
    }
  if (estimates > 0) scale_ = seconds / estimates;
}

double MeasuredCosts::of(const std::string& engine,
                         const Problem& problem) const {
  const auto found = seconds_.find({engine, problem.text()});
  return found != seconds_.end() ? found->second
                                 : scale_ * estimated_cost(problem);
}

Result<ShardOfRun> read_shard(
    const std::string& text,
    const std::function<const char*(const char*)>& environment) {
  if (text != "auto") {
    const std::size_t slash = text.find('/');
    if (slash == text.npos)
      return invalid_argument("--shard: '" + text +
                              "' is neither I/N, such as 1/4, nor auto");
    return shard_of("--shard", text.substr(0, slash), text.substr(slash + 1),
                    1);
  }
  struct Pair {
    const char* index;
    const char* count;
    std::int64_t first;
  };
  constexpr std::array kPairs = {
      Pair{"GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", 0},
      Pair{"CI_NODE_INDEX", "CI_NODE_TOTAL", 1}};
  for (const Pair& pair : kPairs) {
    const char* index = environment(pair.index);
    const char* count = environment(pair.count);
    if (index == nullptr && count == nullptr) continue;
    // GitLab sets the total alone where a job is not parallel.
    if (index == nullptr && std::string(count) == "1") continue;
    if (index == nullptr || count == nullptr)
      return invalid_argument(std::string("--shard auto: ") +
                              (index == nullptr ? pair.index : pair.count) +
                              " is not set, but the other one of the pair is");
    return shard_of(
        std::string("--shard auto: ") + pair.index + " and " + pair.count,
        index, count, pair.first);
  }
  return ShardOfRun{};
}

std::vector<std::int64_t> share_out(const std::vector<double>& costs,
                                    std::int64_t shards) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<double> load(static_cast<std::size_t>(shards), 0.0);
  std::vector<std::int64_t> shard(costs.size());
  for (std::size_t item : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += costs[item];
    shard[item] = least - load.begin();
  }
  return shard;
}

Result<std::int64_t> read_size(const std::string& option,
                               const std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  std::string digits = text;
  std::int64_t unit = 1;
  if (!digits.empty()) {
    const std::size_t found = kUnits.find(digits.back());
    if (found != kUnits.npos) {
      unit = std::int64_t{1} << (10 * (found + 1));
      digits.pop_back();
    }
  }
  const auto number = parse_int(digits);
  if (!number || *number < 1 || *number > INT64_MAX / unit)
    return invalid_argument(option + ": '" + text +
                            "' is no size; expected e.g. 512M, 4G or bytes");
  return *number * unit;
}

std::string size_text(std::int64_t bytes) {
  constexpr std::array kNames = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kNames.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f %s", value < 10 && unit > 0 ? 1 : 0,
                value, kNames[unit]);
  return text;
}

}  // namespace attnguard
