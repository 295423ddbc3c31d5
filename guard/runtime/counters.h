// A snapshot of what the guard did: plain numbers, summed over all threads,
// since the guard was created (in the child of a fork: since the fork).
#ifndef ATTNGUARD_GUARD_RUNTIME_COUNTERS_H_
#define ATTNGUARD_GUARD_RUNTIME_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/runtime_policy.h"

namespace attnguard {

// Why a check was not made in a call that was sampled.
enum class SkipReason : std::uint8_t {
  kBudget,          // The window's share is used up.
  kTooExpensive,    // It alone costs more than the share of a whole window.
  kDevice,          // The tensors lie where the host may not read.
  kUnsupported,     // The call is not one that the guard can judge.
  kNothingToJudge,  // No row that the check says something about.
  kInputNotFinite,  // NaN or Inf came in: what comes out proves nothing.
  kNoKernel,        // A shadow check or canary, and no kernel to call.
  kNotDue,          // A shadow check or canary whose turn it is not.
  kBusy,            // Another thread runs the canary.
  kEngineError,     // The kernel failed on scratch memory.
  kGuardError,      // The guard itself failed, such as for lack of memory.
};
inline constexpr std::size_t kNumSkipReasons = 11;
std::string_view skip_reason_name(SkipReason reason);  // "budget"

// Observed error / bound of what was compared, by powers of ten: bucket i
// counts ratios <= upper_edge(i), the last one all that is larger.
struct ErrorHistogram {
  static constexpr std::size_t kBuckets = 8;
  // 0.001, 0.01, 0.1, 0.5, 1, 10, 100, infinity. More than 1 is a violation.
  static double upper_edge(std::size_t bucket);
  static std::size_t bucket_of(double ratio);  // NaN: the last one

  std::array<std::uint64_t, kBuckets> counts = {};
  double sum = 0;  // of the ratios that are finite
};

// Of kEngine, which is made elsewhere, runs and violations are the reports.
struct CheckCounters {
  std::uint64_t runs = 0;        // Calls in which it was made.
  std::uint64_t rows = 0;        // Rows that it judged.
  std::uint64_t violations = 0;  // Calls in which it found something.
  std::uint64_t findings = 0;
  std::uint64_t nanoseconds = 0;
  std::array<std::uint64_t, kNumSkipReasons> skipped = {};
  ErrorHistogram errors;  // kValueRange, kSingleKey, kRecompute, kOnes

  std::uint64_t skipped_for(SkipReason reason) const {
    return skipped[static_cast<std::size_t>(reason)];
  }
};

struct LayerGroupCounters {
  std::string group;  // "blk.*.attn"
  std::array<std::uint64_t, kNumLiveChecks> violations = {};
};

struct CanaryState {
  std::uint64_t finished = 0;       // Whole runs.
  double seconds_since_last = -1;   // -1: never finished
  std::uint64_t shape_classes = 0;  // Met so far.
};

struct GuardCounters {
  std::uint64_t calls = 0;    // Seen: what sampled() was asked about.
  std::uint64_t sampled = 0;  // Chosen by the countdown, and affordable.
  std::uint64_t checked = 0;  // At least one check was made.
  std::uint64_t fallbacks = 0;

  std::array<CheckCounters, kNumLiveChecks> checks = {};
  std::vector<LayerGroupCounters> groups;         // At most kMostGroups.
  static constexpr std::size_t kMostGroups = 64;  // The rest is "other".

  std::uint64_t overhead_nanoseconds = 0;  // The guard's own time.
  std::uint64_t elapsed_nanoseconds = 0;   // Sum over threads since each one's
                                           // first call.
  double window_overhead = 0;  // Largest share of a thread's present window.
  std::uint64_t threads = 0;
  CanaryState canary;

  const CheckCounters& check(LiveCheck which) const {
    return checks[static_cast<std::size_t>(which)];
  }
  double overhead() const {
    return elapsed_nanoseconds == 0
               ? 0
               : static_cast<double>(overhead_nanoseconds) /
                     static_cast<double>(elapsed_nanoseconds);
  }
  double sampling_rate() const {
    return calls == 0
               ? 0
               : static_cast<double>(sampled) / static_cast<double>(calls);
  }
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_COUNTERS_H_
