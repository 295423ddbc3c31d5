// Counters of one thread: it alone writes them, anybody reads them.
#ifndef ATTNGUARD_GUARD_RUNTIME_TALLY_H_
#define ATTNGUARD_GUARD_RUNTIME_TALLY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "guard/runtime/counters.h"

namespace attnguard::runtime_internal {

// Adding is a load and a store: no bus is locked.
template <typename T>
class Tally {
 public:
  void add(T amount) { set(get() + amount); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }
  T get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{0};
};

using Count = Tally<std::uint64_t>;

struct CheckTally {
  Count runs, rows, violations, findings, nanoseconds;
  std::array<Count, kNumSkipReasons> skipped;
  std::array<Count, ErrorHistogram::kBuckets> errors;
  Tally<double> error_sum;

  void skip(SkipReason reason) {
    skipped[static_cast<std::size_t>(reason)].add(1);
  }
  void error(double ratio);
  void add_to(CheckCounters& sum) const;
  void clear();
};

struct ShardTally {
  Count sampled, checked, fallbacks;
  Count overhead_ns;
  std::array<CheckTally, kNumLiveChecks> checks;

  // Violations by layer group; the last one is "other".
  std::array<std::array<Count, kNumLiveChecks>, GuardCounters::kMostGroups + 1>
      groups;

  CheckTally& check(LiveCheck which) {
    return checks[static_cast<std::size_t>(which)];
  }
  void clear();
};

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_TALLY_H_
