// What the shadow checks share: the live call's own tokens, changed or not, in
// scratch memory.
#ifndef ATTNGUARD_GUARD_RUNTIME_LIVE_SHADOW_H_
#define ATTNGUARD_GUARD_RUNTIME_LIVE_SHADOW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "guard/probe/execute.h"
#include "guard/probe/plan.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {

// Which tokens get fresh values; empty: none. A query is fresh when its row
// sees a fresh key.
struct FreshTokens {
  // Keys from here on are fresh, for each entry; the entry's length: none.
  std::vector<std::int64_t> first_key;
  std::vector<std::vector<char>> fresh_query;  // [batch][q_index]

  bool key(std::int64_t b, std::int64_t j) const {
    return !first_key.empty() && j >= first_key[static_cast<std::size_t>(b)];
  }
  bool query(std::int64_t b, std::int64_t i) const {
    return !fresh_query.empty() && fresh_query[static_cast<std::size_t>(b)]
                                              [static_cast<std::size_t>(i)] !=
                                       0;
  }
};

// Queries and keys of the live call. `live` and `fresh` outlive it.
class LiveScores final : public ScorePattern {
 public:
  LiveScores(const LiveCall& live, const FreshTokens& fresh, std::string name)
      : live_(live), fresh_(fresh), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  bool whole_query() const override { return true; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

 private:
  const LiveCall& live_;
  const FreshTokens& fresh_;
  std::string name_;
};

class LiveValues final : public ValuePattern {
 public:
  LiveValues(const LiveCall& live, const FreshTokens& fresh, std::string name)
      : live_(live), fresh_(fresh), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  std::int64_t columns() const override { return live_.problem.head_dim_v; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override;

 private:
  const LiveCall& live_;
  const FreshTokens& fresh_;
  std::string name_;
};

// The live kernel on scratch memory.
class ShadowRun {
 public:
  explicit ShadowRun(const LiveCall& live);

  // Runs the plan's call; false when the kernel failed, with the reason in the
  // judgement.
  bool run(int index, Observation& seen, Judgement& judgement);

  Plan plan;

 private:
  Engine engine_;
  Executor executor_;
  bool allocated_ = false;
};

// A call whose tensors are those of the observation.
AttentionCall call_of(const Observation& seen);

// Work of one kernel call and of filling its tensors.
double shadow_work(const LiveCall& live);

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_LIVE_SHADOW_H_
