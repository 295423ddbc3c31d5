// Cuts: the sets of later tokens that get fresh values. Rows that see nothing
// of the set must be unchanged, bit for bit; rows that do must move.
//
// Every (batch entry, KV head) is a slot with its own cut, so one call tries
// as many cuts as there are slots; rounds rotate them.
#ifndef ATTNGUARD_GUARD_PROBE_PERTURB_H_
#define ATTNGUARD_GUARD_PROBE_PERTURB_H_

#include <memory>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/token_set.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Which tokens are perturbed, slot by slot.
class CutAssignment final : public TokenSet {
 public:
  // `problem` must outlive it. `round` rotates the cuts of all slots.
  CutAssignment(const Problem& problem, std::int64_t round, std::uint64_t seed);

  // Rounds after which every slot has met every class of cut.
  static std::int64_t rounds_for_all_cuts(const Problem& problem,
                                          std::uint64_t seed);
  // Rounds after which every class of cut was tried in some slot.
  static std::int64_t rounds_for_each_cut(const Problem& problem,
                                          std::uint64_t seed);

  // Keys at or after this position are perturbed; the entry's seq_len_kv
  // when every row sees every key and only queries can be perturbed.
  std::int64_t key_cut(std::int64_t batch, std::int64_t kv_head) const;

  bool key_perturbed(std::int64_t batch, std::int64_t kv_head,
                     std::int64_t kv_index) const override {
    return kv_index >= key_cut(batch, kv_head);
  }
  bool sees_perturbed_key(std::int64_t batch, std::int64_t kv_head,
                          std::int64_t q_index) const override;
  bool query_perturbed(std::int64_t batch, std::int64_t head,
                       std::int64_t q_index) const override;

  // The row saw nothing of what was perturbed.
  bool must_hold(std::int64_t batch, std::int64_t head,
                 std::int64_t q_index) const {
    return !query_perturbed(batch, head, q_index);
  }

  // False when there is neither a shielded key nor another query to change.
  bool perturbs_anything() const;

 private:
  std::int64_t max_len_q_;
  std::vector<std::int64_t> key_cuts_;  // [batch][kv_head]
  std::vector<char> query_perturbed_;   // [batch][kv_head][q_index]
};

using CutAssignmentPtr = std::shared_ptr<const CutAssignment>;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_PERTURB_H_
