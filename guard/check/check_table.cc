#include "guard/check/check_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

namespace attnguard {

// Checks plan in this order. row-sum comes after those whose calls it adds
// its column to.
std::span<const CheckInfo* const> all_checks() {
  static constexpr std::array kChecks = {
      &kCheckFutureInfluence,
      &kCheckAmplitude,
      &kCheckSequenceIsolation,
      &kCheckVisibility,
      &kCheckHeadMap,
      &kCheckRowSum,
      &kCheckValueRange,
      &kCheckReference,
      &kCheckScoreShift,
      &kCheckEmptyRow,
      &kCheckPrefixConsistency,
      &kCheckDecodeConsistency,
      &kCheckBatchConsistency,
      &kCheckToggle,
      &kCheckUnusedSlots,
      &kCheckUnusedSlotsNan,
      &kCheckWeights,
      &kCheckLse,
      &kCheckCacheWrite,
      &kCheckFinite,
      &kCheckMemory,
      &kCheckRepeatable,
  };
  return kChecks;
}

const CheckInfo* find_check(std::string_view id) {
  for (const CheckInfo* check : all_checks())
    if (check->id == id) return check;
  return nullptr;
}

std::vector<std::string_view> check_ids() {
  std::vector<std::string_view> ids;
  for (const CheckInfo* check : all_checks()) ids.push_back(check->id);
  return ids;
}

std::vector<std::string> own_output_checks() {
  std::vector<std::string> ids;
  for (const CheckInfo* check : all_checks())
    if (!check->beyond) ids.emplace_back(check->id);
  return ids;
}

void FindingSink::add(Finding finding) {
  double difference = std::abs(finding.observed - finding.expected);
  if (std::isnan(difference))
    difference = std::numeric_limits<double>::infinity();
  if (difference > largest_difference_) {
    largest_difference_ = difference;
    largest_probe_ = finding.probe;
  }
  if (!seen_
           .emplace(finding.kind, finding.batch, finding.head, finding.query,
                    finding.key, finding.tensor, finding.element)
           .second)
    return;
  ++count_;
  ++by_kind_[finding.kind];
  if (static_cast<std::int64_t>(kept_.size()) < kMostKept)
    kept_.push_back(std::move(finding));
}

std::vector<Finding> FindingSink::take() {
  std::stable_sort(kept_.begin(), kept_.end(),
                   [](const Finding& a, const Finding& b) {
                     return std::tie(a.batch, a.head, a.query, a.key) <
                            std::tie(b.batch, b.head, b.query, b.key);
                   });
  return std::move(kept_);
}

}  // namespace attnguard
