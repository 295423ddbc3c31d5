// Needle: keys carry +-1 codes over head_dim_qk that are distinct within a
// sequence and KV head; row i's query is the code of one visible key chosen
// at random, amplified until that key dominates every other one. The row's
// output is exactly that key's value: score and value addressing, head map
// and batch isolation at once. Codes of equal magnitude survive block
// quantisation.
#ifndef ATTNGUARD_GUARD_PROBE_NEEDLE_H_
#define ATTNGUARD_GUARD_PROBE_NEEDLE_H_

#include <memory>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"

namespace attnguard {

class NeedleScores final : public ScorePattern {
 public:
  // `problem` must outlive the pattern. nullptr when the codes do not fit;
  // `why_not` then says so. `gap` in nats.
  static std::shared_ptr<const NeedleScores> make(const Problem& problem,
                                                  const Numerics& numerics,
                                                  double gap,
                                                  std::uint64_t seed,
                                                  std::string& why_not);

  std::string name() const override { return "needle"; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

  // The key that the row must find; -1 when no key is allowed.
  std::int64_t target(std::int64_t batch, std::int64_t head,
                      std::int64_t q_index, const KeyRanges& allowed) const;

 private:
  explicit NeedleScores(const Problem& problem) : problem_(problem) {}

  const Problem& problem_;
  std::uint64_t seed_ = 0;
  std::int64_t position_bits_ = 1;
  double query_amplitude_ = 1;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_NEEDLE_H_
