// Ladder: scores rise (up) or fall (down) with the key's position by a gap of
// at least `gap` nats, so the softmax puts all weight on the last (first)
// visible key and any leaked later (earlier) key takes the row over.
//
// Scores stay exact in every dtype because the key's rank is split into
// digits of 7 bits: key channel m holds digit m, query channel m the power of
// two 128^m. Their products are small integers times a power of two, which
// fp32 sums without rounding in any order (TF32 and bf16 inputs too).
#ifndef ATTNGUARD_GUARD_PROBE_LADDER_H_
#define ATTNGUARD_GUARD_PROBE_LADDER_H_

#include <memory>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"

namespace attnguard {

// The gap (nats) at which the weights of all other keys together, times
// values of up to `amplitude`, vanish below half a unit in the last place of
// the engine's accumulator.
double dominance_gap(const Numerics& numerics, double amplitude);

class LadderScores final : public ScorePattern {
 public:
  enum class Direction { kUp, kDown };

  // nullptr when the ladder's range does not fit the problem's dtype, the
  // channels or the engine's scores; `why_not` then says so.
  static std::shared_ptr<const LadderScores> make(const Problem& problem,
                                                  const Numerics& numerics,
                                                  Direction direction,
                                                  double gap,
                                                  std::string& why_not);

  std::string name() const override {
    return direction_ == Direction::kUp ? "ladder-up" : "ladder-down";
  }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;

 private:
  LadderScores() = default;

  Direction direction_ = Direction::kUp;
  std::int64_t channels_ = 0;
  std::int64_t digits_ = 1;
  std::int64_t len_kv_ = 1;
  std::int64_t first_rank_ = 0;
  double query_unit_ = 1;  // Query channel m holds query_unit * 128^m,
  double key_unit_ = 1;    // key channel m holds digit m * key_unit.
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_LADDER_H_
