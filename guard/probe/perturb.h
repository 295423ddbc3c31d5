// Perturb: fresh random values in a set of later tokens (their keys, values
// and queries), all else as in the random base call. Rows that see nothing of
// the set must be unchanged, bit for bit; rows that do must move.
//
// Every (batch entry, KV head) is a slot with its own cut, so one call tries
// as many cuts as there are slots; rounds rotate them.
#ifndef ATTNGUARD_GUARD_PROBE_PERTURB_H_
#define ATTNGUARD_GUARD_PROBE_PERTURB_H_

#include <memory>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Which tokens are perturbed, slot by slot.
class CutAssignment {
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

  bool query_perturbed(std::int64_t batch, std::int64_t head,
                       std::int64_t q_index) const;

  // The row saw nothing of what was perturbed.
  bool must_hold(std::int64_t batch, std::int64_t head,
                 std::int64_t q_index) const {
    return !query_perturbed(batch, head, q_index);
  }

  // False when there is neither a shielded key nor another query to change.
  bool perturbs_anything() const;

  const Problem& problem() const { return problem_; }

 private:
  bool sees_perturbed_key(std::int64_t batch, std::int64_t kv_head,
                          std::int64_t q_index) const;

  const Problem& problem_;
  std::int64_t max_len_q_;
  std::vector<std::int64_t> key_cuts_;  // [batch][kv_head]
  std::vector<char> query_perturbed_;   // [batch][kv_head][q_index]
};

using CutAssignmentPtr = std::shared_ptr<const CutAssignment>;

// The largest power of two by which queries and keys may grow so that scores
// stay finite in the engine's score type, at most 64.
double extreme_amplitude(const Problem& problem, const Numerics& numerics);

class PerturbedScores final : public ScorePattern {
 public:
  // `label` names the round and amplitude: "perturb-2-extreme".
  PerturbedScores(CutAssignmentPtr cuts, std::string label,
                  std::uint64_t base_seed, std::uint64_t fresh_seed,
                  double amplitude)
      : cuts_(std::move(cuts)),
        label_(std::move(label)),
        base_seed_(base_seed),
        fresh_seed_(fresh_seed),
        amplitude_(amplitude) {}

  std::string name() const override { return label_; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

 private:
  CutAssignmentPtr cuts_;
  std::string label_;
  std::uint64_t base_seed_, fresh_seed_;
  double amplitude_;
};

class PerturbedValues final : public ValuePattern {
 public:
  PerturbedValues(CutAssignmentPtr cuts, std::string label,
                  std::uint64_t base_seed, std::uint64_t fresh_seed,
                  double amplitude)
      : cuts_(std::move(cuts)),
        label_(std::move(label)),
        base_seed_(base_seed),
        fresh_seed_(fresh_seed),
        amplitude_(amplitude) {}

  std::string name() const override { return label_; }
  std::int64_t columns() const override { return cuts_->problem().head_dim_v; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override;

 private:
  CutAssignmentPtr cuts_;
  std::string label_;
  std::uint64_t base_seed_, fresh_seed_;
  double amplitude_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_PERTURB_H_
