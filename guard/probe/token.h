// One token of one (batch entry, KV head) with fresh key, value and query,
// all else as in the random base call: a column of the influence map.
#ifndef ATTNGUARD_GUARD_PROBE_TOKEN_H_
#define ATTNGUARD_GUARD_PROBE_TOKEN_H_

#include <cstdint>

#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

class OneToken {
 public:
  // The token's query is that of the row that sees the token's key as its last
  // (a causal row and its own token); where no row does, only key and value
  // change.
  OneToken(const Problem& problem, std::uint64_t seed, std::int64_t batch,
           std::int64_t head, std::int64_t token);

  ScorePatternPtr scores() const { return scores_; }
  ValuePatternPtr values() const { return values_; }

 private:
  ScorePatternPtr scores_;
  ValuePatternPtr values_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_TOKEN_H_
