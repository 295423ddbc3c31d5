// Shift: random scores with a constant added to every score of every row. The
// softmax does not change; what compares a score with a finite number does.
#ifndef ATTNGUARD_GUARD_PROBE_SHIFT_H_
#define ATTNGUARD_GUARD_PROBE_SHIFT_H_

#include <memory>
#include <string>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"

namespace attnguard {

class ShiftedScores final : public ScorePattern {
 public:
  // The last channel of query and key carries the shift, in nats. nullptr when
  // the dtype or the engine's scores cannot hold it, or when a soft-cap would
  // bend it; `why_not` then says so.
  static std::shared_ptr<const ShiftedScores> make(const Problem& problem,
                                                   const Numerics& numerics,
                                                   double shift,
                                                   std::uint64_t seed,
                                                   std::string& why_not);

  std::string name() const override { return name_; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

 private:
  ShiftedScores() = default;

  std::string name_;
  std::int64_t channels_ = 1;
  std::uint64_t seed_ = 0;
  double query_ = 0, key_ = 1;  // of the last channel
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_SHIFT_H_
