// How far rounding explains what the passive checks compare, and what they say
// where it does not: one set of formulas for the engine and for replays.
#ifndef ATTNGUARD_GUARD_RUNTIME_LIVE_BOUNDS_H_
#define ATTNGUARD_GUARD_RUNTIME_LIVE_BOUNDS_H_

#include <cstdint>
#include <span>

#include "guard/check/reference_rows.h"
#include "guard/engine/reference.h"
#include "guard/finding/finding.h"
#include "guard/problem/problem.h"

namespace attnguard::runtime_internal {

// Of rows without keys only zero is promised exactly.
bool judged_when_empty(const Problem& problem);

// Everything that went into the fp64 row is finite, and stays so in the
// engine's arithmetic. Otherwise the row proves nothing.
bool finite_row(const Numerics& numerics, const ReferenceRow& row);

// The channel of a row in which |output - expected| / bound is largest; more
// than 1 is a finding. NaN counts as largest.
struct WorstChannel {
  std::int64_t channel = 0;
  double ratio = -1;
  double bound = 0;
};
WorstChannel worst_channel(const Problem& problem, const Numerics& numerics,
                           const ReferenceRow& expected,
                           std::span<const double> output);

// Between which values an output channel may lie.
struct ValueLimit {
  double low = 0, high = 0;
  double slack = 0;  // above 0

  // How far out of the range; below 0 within it. Written for !(... <= slack),
  // so that NaN is outside.
  double outside(double output) const;
};

// The limits of a row that sees `num_keys` keys whose values lie within
// [low[c], high[c]] in channel c. The spans must outlive it.
class ValueLimits {
 public:
  ValueLimits(const Problem& problem, const Numerics& numerics,
              std::int64_t num_keys, std::span<const double> low,
              std::span<const double> high);

  ValueLimit of(std::size_t channel) const;

 private:
  std::span<const double> low_, high_;
  bool sinks_;
  double relative_;  // of the channel's largest value
  double stored_;    // what storing costs every channel
  double step_;      // of the output
};

Finding not_finite_finding(const RowIndex& row, std::int64_t channel,
                           double output);
Finding outside_finding(const RowIndex& row, std::int64_t channel,
                        double output, const ValueLimit& limit);
Finding difference_finding(const RowIndex& row, const WorstChannel& worst,
                           double output, double expected);

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_LIVE_BOUNDS_H_
