// The budget is kept, and what it leaves out is counted.
#include <gtest/gtest.h>

#include "guard/runtime/budget.h"
#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

GuardCounters serve(double max_overhead, double seconds) {
  RuntimePolicy policy;
  policy.max_overhead = max_overhead;
  policy.window = 0.5;
  policy.patches.resize(1);
  policy.patches[0].sample_every = 1;
  auto guard = std::move(Guard::create(policy).value());
  LiveCallData data(
      "num_heads=4 seq_len=64 head_dim=32 mask=causal_bottom_right");
  const AttentionCallback guarded =
      guard->wrap(builtin("tiled").run, guard->layer("a"));
  const std::int64_t end = runtime_internal::monotonic_now() +
                           static_cast<std::int64_t>(seconds * 1e9);
  while (runtime_internal::monotonic_now() < end)
    EXPECT_TRUE(guarded(data.call()).ok());
  return guard->counters();
}

// How near to the budget is for the bench: a busy machine puts threads aside.
TEST(Overhead, ABudgetKeepsItLow) {
  const GuardCounters small = serve(0.01, 1.0);
  EXPECT_LT(small.overhead(), serve(1, 0.5).overhead() / 2);
  EXPECT_GT(small.checked, 0u);
  std::uint64_t skipped = 0;
  for (const CheckCounters& check : small.checks)
    skipped += check.skipped_for(SkipReason::kBudget);
  EXPECT_GT(skipped, 0u);
}

TEST(Overhead, NothingIsAllowedNothing) {
  const GuardCounters none = serve(0, 0.1);
  EXPECT_EQ(none.checked, 0u);
  EXPECT_GT(none.calls, 10u);
}

TEST(Overhead, WhatTheHostSpendsCounts) {
  RuntimePolicy policy;
  policy.max_overhead = 0.005;
  policy.window = 100;
  policy.patches.resize(1);
  policy.patches[0].sample_every = 1;
  auto guard = std::move(Guard::create(policy).value());
  const LayerHandle layer = guard->layer("a");
  guard->charge(1000000000);  // A whole second: twice what a window gives.
  for (int call = 0; call < 1000; ++call) EXPECT_FALSE(guard->sampled(layer));
  EXPECT_GE(guard->counters().overhead_nanoseconds, 1000000000u);
}

TEST(Overhead, ALargerBudgetLooksMoreOften) {
  EXPECT_GT(serve(0.2, 0.5).check(LiveCheck::kRecompute).rows,
            2 * serve(0.01, 0.5).check(LiveCheck::kRecompute).rows);
}

}  // namespace
}  // namespace attnguard
