#include "guard/problem/empty_rows.h"

namespace attnguard {

bool has_empty_row(const Problem& problem) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (allowed.empty()) return true;
    }
  return false;
}

}  // namespace attnguard
