// The random base call, and whether a row of a later call is what it was
// there: what every check that changes something else compares with.
#ifndef ATTNGUARD_GUARD_CHECK_BASELINE_H_
#define ATTNGUARD_GUARD_CHECK_BASELINE_H_

#include <cstdint>

#include "guard/check/check.h"

namespace attnguard {

class Baseline {
 public:
  // Keeps the random base call's output. Of an engine that declares itself
  // non-deterministic a repeat measures the noise.
  void plan(Plan& plan, const CheckContext& context);

  // The positive control where none of the check's own calls moves a row: a
  // call with other inputs altogether, in which every row may move.
  void plan_control(Plan& plan, const CheckContext& context);

  // To be called for every observation.
  void judge(const Observation& seen);

  std::int64_t rows_moved_by_control() const { return rows_moved_; }

  int call() const { return base_.call; }

  // The row differs by more than may pass: bit for bit under `exact` and, of a
  // deterministic engine, `auto`; a number or four times the noise otherwise.
  // `change` is the largest difference, NaN where one is NaN.
  bool moved(const Observation& seen, std::int64_t batch, std::int64_t head,
             std::int64_t query, double& change) const;

  // The largest difference that passes.
  double limit() const { return limit_ < 0 ? 0 : limit_; }

  // The noise is so large that nothing can be said; then fills the result.
  bool too_noisy(CheckResult& result) const;

 private:
  Ticket base_, repeat_, control_;
  std::int64_t rows_moved_ = 0;
  double limit_ = -1;  // < 0: bit for bit
  bool measures_noise_ = false;
  double noise_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_BASELINE_H_
