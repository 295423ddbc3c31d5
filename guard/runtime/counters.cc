#include "guard/runtime/counters.h"

#include <limits>

namespace attnguard {
namespace {

constexpr double kEdges[ErrorHistogram::kBuckets] = {
    0.001, 0.01, 0.1, 0.5, 1, 10, 100, std::numeric_limits<double>::infinity()};

}  // namespace

std::string_view skip_reason_name(SkipReason reason) {
  switch (reason) {
    case SkipReason::kBudget:
      return "budget";
    case SkipReason::kTooExpensive:
      return "too-expensive";
    case SkipReason::kDevice:
      return "device";
    case SkipReason::kUnsupported:
      return "unsupported";
    case SkipReason::kNothingToJudge:
      return "nothing-to-judge";
    case SkipReason::kInputNotFinite:
      return "input-not-finite";
    case SkipReason::kNoKernel:
      return "no-kernel";
    case SkipReason::kNotDue:
      return "not-due";
    case SkipReason::kBusy:
      return "busy";
    case SkipReason::kEngineError:
      return "engine-error";
    case SkipReason::kGuardError:
      break;
  }
  return "guard-error";
}

double ErrorHistogram::upper_edge(std::size_t bucket) {
  return kEdges[bucket < kBuckets ? bucket : kBuckets - 1];
}

std::size_t ErrorHistogram::bucket_of(double ratio) {
  for (std::size_t i = 0; i + 1 < kBuckets; ++i)
    if (ratio <= kEdges[i]) return i;
  return kBuckets - 1;
}

}  // namespace attnguard
