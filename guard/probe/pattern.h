// What a probe puts into the tensors. A score pattern chooses queries and
// keys, a value pattern some columns of V; a call is one score pattern and as
// many value patterns as fit into head_dim_v, so checks that want the same
// scores share calls.
//
// Patterns are pure: any row can be asked for, in any order, by any thread.
#ifndef ATTNGUARD_GUARD_PROBE_PATTERN_H_
#define ATTNGUARD_GUARD_PROBE_PATTERN_H_

#include <cstdint>
#include <memory>
#include <string>

namespace attnguard {

class ScorePattern {
 public:
  virtual ~ScorePattern() = default;

  // Patterns of equal name fill the same rows.
  virtual std::string name() const = 0;

  // Both fill Problem::score_channels() channels, which are head_dim_qk unless
  // the value lies in the key: the query's other channels are then 0, and the
  // key's are the value.
  virtual void query_row(std::int64_t batch, std::int64_t head,
                         std::int64_t q_index, double* to) const = 0;
  virtual void key_row(std::int64_t batch, std::int64_t kv_head,
                       std::int64_t kv_index, double* to) const = 0;

  // True: query_row fills head_dim_qk channels in any case.
  virtual bool whole_query() const { return false; }
};

class ValuePattern {
 public:
  virtual ~ValuePattern() = default;

  virtual std::string name() const = 0;
  virtual std::int64_t columns() const = 0;

  // Fills columns() channels.
  virtual void value_row(std::int64_t batch, std::int64_t kv_head,
                         std::int64_t kv_index, double* to) const = 0;
};

using ScorePatternPtr = std::shared_ptr<const ScorePattern>;
using ValuePatternPtr = std::shared_ptr<const ValuePattern>;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_PATTERN_H_
