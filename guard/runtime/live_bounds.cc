#include "guard/runtime/live_bounds.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "guard/check/compare.h"
#include "guard/check/rows.h"

namespace attnguard::runtime_internal {
namespace {

// What is smaller is lost where weights or outputs are stored.
double smallest_step(Dtype dtype) {
  return dtype == Dtype::kFp16 ? 0x1p-25 : 0x1p-125;
}

Finding finding_of(FindingKind kind, const RowIndex& row, std::int64_t channel,
                   double observed, double expected, double bound,
                   const std::string& what) {
  Finding finding{.kind = kind,
                  .probe = "live",
                  .batch = row.batch,
                  .head = row.head,
                  .query = row.query,
                  .channel = channel,
                  .observed = observed,
                  .expected = expected,
                  .bound = bound};
  finding.message = row_name(row.batch, row.head, row.query) +
                    ": output channel " + std::to_string(channel) + " is " +
                    format_short(observed) + ", " + what;
  return finding;
}

}  // namespace

bool judged_when_empty(const Problem& problem) {
  return problem.empty_row == EmptyRow::kZero && problem.sinks.empty();
}

bool finite_row(const Numerics& numerics, const ReferenceRow& row) {
  const double largest = dtype_info(numerics.accumulator).max_finite;
  if (row.num_keys == 0) return true;
  return std::isfinite(row.lse) && row.score_magnitude < largest &&
         std::all_of(row.output.begin(), row.output.end(),
                     [](double x) { return std::isfinite(x); });
}

WorstChannel worst_channel(const Problem& problem, const Numerics& numerics,
                           const ReferenceRow& expected,
                           std::span<const double> output) {
  // Where parts are merged by their log-sum-exps those round as scores do.
  const double merged = std::expm1(8 * unit_roundoff(numerics.accumulator) *
                                   expected.max_abs_score);
  WorstChannel worst;
  for (std::size_t c = 0; c < output.size(); ++c) {
    const auto channel = static_cast<std::int64_t>(c);
    const double difference = std::abs(output[c] - expected.output[c]);
    double bound = reference_bound(problem, numerics, expected, channel);
    if (expected.num_keys > 0) bound += merged * expected.weighted_abs[c];
    const double ratio =
        difference == 0 ? 0 : difference / std::max(bound, 1e-300);
    // NaN stays the worst.
    if (ratio <= worst.ratio || std::isnan(worst.ratio)) continue;
    worst = {channel, ratio, bound};
  }
  return worst;
}

double ValueLimit::outside(double output) const {
  return std::max(low - output, output - high);
}

ValueLimits::ValueLimits(const Problem& problem, const Numerics& numerics,
                         std::int64_t num_keys, std::span<const double> low,
                         std::span<const double> high)
    : low_(low), high_(high), sinks_(!problem.sinks.empty()) {
  double block = 0;
  for (std::size_t c = 0; c < low.size(); ++c)
    block = std::max({block, std::abs(low[c]), std::abs(high[c])});
  const double stored = numerics.value_error;
  relative_ =
      mean_bound(problem, numerics, num_keys) - stored +
      static_cast<double>(num_keys) * smallest_step(numerics.probability);
  stored_ = stored * block;
  step_ = smallest_step(problem.output_dtype());
}

ValueLimit ValueLimits::of(std::size_t channel) const {
  ValueLimit limit{low_[channel], high_[channel], 0};
  // A sink pulls towards 0.
  if (sinks_) {
    limit.low = std::min(limit.low, 0.0);
    limit.high = std::max(limit.high, 0.0);
  }
  limit.slack =
      relative_ * std::max(std::abs(limit.low), std::abs(limit.high)) +
      stored_ + step_;
  return limit;
}

Finding not_finite_finding(const RowIndex& row, std::int64_t channel,
                           double output) {
  return finding_of(FindingKind::kNonFinite, row, channel, output, 0, 0,
                    "although everything that the row sees is finite");
}

Finding outside_finding(const RowIndex& row, std::int64_t channel,
                        double output, const ValueLimit& limit) {
  return finding_of(FindingKind::kValue, row, channel, output,
                    output < limit.low ? limit.low : limit.high, limit.slack,
                    "outside the values that the row sees, " +
                        format_short(limit.low) + " to " +
                        format_short(limit.high));
}

Finding difference_finding(const RowIndex& row, const WorstChannel& worst,
                           double output, double expected) {
  return finding_of(
      FindingKind::kValue, row, worst.channel, output, expected, worst.bound,
      "fp64 attention gives " + format_short(expected) +
          " (rounding explains " + format_short(worst.bound) + ")");
}

}  // namespace attnguard::runtime_internal
