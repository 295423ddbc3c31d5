#include "guard/probe/target_rows.h"

#include <algorithm>

namespace attnguard {

TargetRows::TargetRows(
    const Problem& problem,
    const std::function<bool(std::int64_t, std::int64_t)>& is_target)
    : TokenSet(problem),
      len_q_(problem.max_len_q()),
      len_kv_(problem.max_len_kv()),
      target_(static_cast<std::size_t>(problem.batch * len_q_), 0),
      seen_(static_cast<std::size_t>(problem.batch * len_kv_), 0) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      if (!is_target(b, i)) continue;
      target_[static_cast<std::size_t>(b * len_q_ + i)] = 1;
      problem.mask.allowed(problem.row(b, i), allowed);
      num_targets_ += !allowed.empty();
      for (const KeyRange& range : allowed.ranges())
        for (std::int64_t j = range.begin; j < range.end; ++j)
          seen_[static_cast<std::size_t>(problem.owner(b, j) * len_kv_ + j)] =
              1;
    }
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t j = 0; j < problem.len_kv(b); ++j)
      if (problem.owner(b, j) == b && key_perturbed(b, 0, j))
        ++num_perturbed_keys_;
}

bool TargetRows::key_perturbed(std::int64_t batch, std::int64_t,
                               std::int64_t kv_index) const {
  return seen_[static_cast<std::size_t>(batch * len_kv_ + kv_index)] == 0;
}

}  // namespace attnguard
