// What one thread has of a guard: countdowns, budget, counters, buffers. Only
// that thread writes it; snapshots read the counters.
#ifndef ATTNGUARD_GUARD_RUNTIME_SHARD_H_
#define ATTNGUARD_GUARD_RUNTIME_SHARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "guard/engine/reference.h"
#include "guard/problem/key_ranges.h"
#include "guard/runtime/budget.h"
#include "guard/runtime/hull.h"
#include "guard/runtime/tally.h"

namespace attnguard::runtime_internal {

// Buffers that looking at calls needs; they grow to what the thread meets.
struct Scratch {
  ReferenceRow row;
  std::vector<double> output, value;
  KeyRanges allowed;
  Hull walk, single;
};

struct LayerSlot {
  Tally<std::int64_t> drawn;   // Sum of all gaps, the present one included.
  std::int64_t gap = 0;        // The present one; 0: none yet.
  std::int64_t last_time = 0;  // When a call was sampled last.
  double call_ns = 0;          // From call to call; 0: not known yet.
  double mean = 0;             // Of the present gap.
  double expected_cost = 0;    // Of the next check, as far as is known.
  LiveCheck expected = LiveCheck::kFinite;
  std::uint64_t looks = 0;      // Calls that were observed.
  std::int64_t shadow_gap = 0;  // Looks until the shadow checks' turn.
  unsigned shadow_due = 0;      // Bits of LiveCheck.
};

struct Shard {
  Shard(std::uint64_t number, double passive_share, double active_share,
        double window);

  // Room for so many layers. The caller holds the guard's lock.
  void reserve(std::uint32_t layers);

  // Random bits of this thread; never the same twice.
  std::uint64_t draw(std::uint64_t seed);

  // Of all layers. Too low by a gap while one is drawn, and may then be < 0.
  std::int64_t calls() const;
  std::int64_t shown_calls = 0;  // The most that a snapshot showed.

  std::uint64_t number;
  std::atomic<bool> in_use{true};

  std::uint32_t num_layers = 0;
  std::unique_ptr<std::atomic<std::int64_t>[]> countdowns;
  std::unique_ptr<LayerSlot[]> slots;

  // Times. `elapsed_before` is that of threads that used the shard and ended.
  Tally<std::int64_t> start, elapsed_before;

  Budget budget;
  Savings savings;
  double slow_path_ns = 300;  // sampled() when it decides
  std::array<CostModel, kNumLiveChecks> costs;
  std::size_t next_passive = 0;  // Whose turn it is.

  ShardTally tally;
  HullTable hulls;
  Scratch scratch;

 private:
  std::uint64_t draws_ = 0;
};

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_SHARD_H_
