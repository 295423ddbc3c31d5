// Shared by the checks: visiting the rows of a problem, and the places of a
// finding in words.
#ifndef ATTNGUARD_GUARD_CHECK_ROWS_H_
#define ATTNGUARD_GUARD_CHECK_ROWS_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "guard/engine/engine.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Calls visit(batch, head, q_index, allowed) for every row that has an
// allowed key: batch by batch, query by query, head innermost, since masks do
// not depend on the head.
template <typename Visit>
void for_each_row(const Problem& problem, Visit visit) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t len_q = problem.len_q(b);
    for (std::int64_t i = 0; i < len_q; ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (allowed.empty()) continue;
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        visit(b, h, i, allowed);
    }
  }
}

inline bool has_row_with_keys(const Problem& problem) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (!allowed.empty()) return true;
    }
  return false;
}

// "batch 1, head 3, query 17"
inline std::string row_name(std::int64_t batch, std::int64_t head,
                            std::int64_t query) {
  return "batch " + std::to_string(batch) + ", head " + std::to_string(head) +
         ", query " + std::to_string(query);
}

// Rounding of a weighted mean of values within [-1, 1] over n keys: the
// row-sum bound of the design, lambda = 5, and the storage error of V.
inline double mean_bound(const Problem& problem, const Numerics& numerics,
                         std::int64_t num_keys) {
  return unit_roundoff(numerics.probability) +
         unit_roundoff(problem.output_dtype()) +
         5 * std::sqrt(static_cast<double>(num_keys)) *
             unit_roundoff(numerics.accumulator) +
         numerics.value_error;
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_ROWS_H_
