#include "guard/runtime/tally.h"

#include <cmath>

namespace attnguard::runtime_internal {

void CheckTally::error(double ratio) {
  errors[ErrorHistogram::bucket_of(ratio)].add(1);
  if (std::isfinite(ratio)) error_sum.add(ratio);
}

void CheckTally::add_to(CheckCounters& sum) const {
  sum.runs += runs.get();
  sum.rows += rows.get();
  sum.violations += violations.get();
  sum.findings += findings.get();
  sum.nanoseconds += nanoseconds.get();
  for (std::size_t i = 0; i < skipped.size(); ++i)
    sum.skipped[i] += skipped[i].get();
  for (std::size_t i = 0; i < errors.size(); ++i)
    sum.errors.counts[i] += errors[i].get();
  sum.errors.sum += error_sum.get();
}

void CheckTally::clear() {
  for (Count* count : {&runs, &rows, &violations, &findings, &nanoseconds})
    count->set(0);
  for (Count& count : skipped) count.set(0);
  for (Count& count : errors) count.set(0);
  error_sum.set(0);
}

void ShardTally::clear() {
  for (Count* count : {&sampled, &checked, &fallbacks, &overhead_ns})
    count->set(0);
  for (CheckTally& check : checks) check.clear();
  for (auto& group : groups)
    for (Count& count : group) count.set(0);
}

}  // namespace attnguard::runtime_internal
