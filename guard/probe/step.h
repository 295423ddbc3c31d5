// Step: random scores, and V column c = 1 for keys at or after a threshold
// t_c (up) or at or before it (down), 0 for all others. A row whose last
// allowed key is before t_c must be exactly 0 in that column whatever the
// scores, dtype or storage: any leaked weight at all shows, with no
// tolerance. Mirrored for rows that begin after t_c.
#ifndef ATTNGUARD_GUARD_PROBE_STEP_H_
#define ATTNGUARD_GUARD_PROBE_STEP_H_

#include <vector>

#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Key positions where kernels change path: 1, the last, both sides of tile
// edges (16 ... 256 and multiples of 128 near the end), within [1, length).
// Sorted; empty for length < 2.
std::vector<std::int64_t> edge_cuts(std::int64_t length);

class StepValues final : public ValuePattern {
 public:
  enum class Direction { kUp, kDown };

  // Thresholds differ between batch entries and KV heads: the edges first,
  // in rotation, then random ones. `down_columns` of the columns are mirrored.
  StepValues(const Problem& problem, std::int64_t columns,
             std::int64_t down_columns, std::uint64_t seed);

  std::string name() const override { return "step"; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override;

  Direction direction(std::int64_t column) const {
    return column < columns_ - down_columns_ ? Direction::kUp
                                             : Direction::kDown;
  }
  // 0 <= threshold < the entry's seq_len_kv, when that is not 0.
  std::int64_t threshold(std::int64_t batch, std::int64_t kv_head,
                         std::int64_t column) const {
    return thresholds_[static_cast<std::size_t>(
        (batch * num_kv_heads_ + kv_head) * columns_ + column)];
  }

 private:
  std::int64_t columns_;
  std::int64_t down_columns_;
  std::int64_t num_kv_heads_;
  std::vector<std::int64_t> thresholds_;  // [batch][kv_head][column]
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_STEP_H_
