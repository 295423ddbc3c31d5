// Everything that a choice of rows may not depend on: the keys that none of
// them sees, of whatever sequence and head, and the queries of all other rows.
#ifndef ATTNGUARD_GUARD_PROBE_TARGET_ROWS_H_
#define ATTNGUARD_GUARD_PROBE_TARGET_ROWS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "guard/probe/token_set.h"

namespace attnguard {

class TargetRows final : public TokenSet {
 public:
  // The rows are targets in every head. `problem` must outlive it.
  TargetRows(const Problem& problem,
             const std::function<bool(std::int64_t batch,
                                      std::int64_t q_index)>& is_target);

  bool target(std::int64_t batch, std::int64_t q_index) const {
    return target_[static_cast<std::size_t>(batch * len_q_ + q_index)] != 0;
  }
  bool key_perturbed(std::int64_t batch, std::int64_t kv_head,
                     std::int64_t kv_index) const override;
  bool query_perturbed(std::int64_t batch, std::int64_t head,
                       std::int64_t q_index) const override {
    (void)head;
    return !target(batch, q_index);
  }

  std::int64_t num_targets() const { return num_targets_; }  // with keys
  std::int64_t num_perturbed_keys() const { return num_perturbed_keys_; }

 private:
  std::int64_t len_q_, len_kv_;
  std::vector<char> target_;  // [batch][q_index]
  std::vector<char> seen_;    // [batch][kv_index], by the owner of the token
  std::int64_t num_targets_ = 0;
  std::int64_t num_perturbed_keys_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_TARGET_ROWS_H_
