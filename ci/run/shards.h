// What a problem costs, and how the problems of a run are shared out.
#ifndef ATTNGUARD_CI_RUN_SHARDS_H_
#define ATTNGUARD_CI_RUN_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "guard/base/status.h"
#include "guard/finding/result.h"
#include "guard/problem/problem.h"

namespace attnguard {

// The time of a problem relative to that of others: the multiplications of its
// attention, its tensors, and what every problem costs.
double estimated_cost(const Problem& problem);

// About the most memory that checking the problem takes at a time, in bytes:
// its tensors, what they are compared with, and the weights of all rows where
// the engine gives them.
std::int64_t estimated_bytes(const Problem& problem, bool gives_weights);

// Times of an earlier run, as its JSON report says them.
class MeasuredCosts {
 public:
  MeasuredCosts() = default;  // Nothing was measured: estimates.

  // kInvalidArgument, kNotFound: not a JSON report, or no such file.
  static Result<MeasuredCosts> read(const std::string& path);
  explicit MeasuredCosts(const std::vector<RunResult>& runs);

  // Seconds: measured, or estimated on the scale of those that were.
  double of(const std::string& engine, const Problem& problem) const;

 private:
  std::map<std::pair<std::string, std::string>, double> seconds_;
  double scale_ = 1;  // Seconds for a unit of estimated_cost.
};

// "2/4": part 2 of 4. "auto": what GTEST_SHARD_INDEX and GTEST_TOTAL_SHARDS or
// CI_NODE_INDEX and CI_NODE_TOTAL say, the whole where none is set.
// `environment` gives a variable's value, or nullptr.
Result<ShardOfRun> read_shard(
    const std::string& text,
    const std::function<const char*(const char*)>& environment);

// The shard, from 0, of each of the costs: the dearest first, each to the
// shard with the least so far. The same costs give the same parts, so that
// shards that know nothing of each other share all out.
std::vector<std::int64_t> share_out(const std::vector<double>& costs,
                                    std::int64_t shards);

// "512M", "4G" or a number of bytes.
Result<std::int64_t> read_size(const std::string& option,
                               const std::string& text);

// "1.5 GiB"
std::string size_text(std::int64_t bytes);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_SHARDS_H_
