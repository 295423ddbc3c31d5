// What the guard may spend, on a clock of the test's own.
#include "guard/runtime/budget.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "guard/base/rng.h"

namespace attnguard::runtime_internal {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Budget, GrowsWithTimeUpToAWindow) {
  Budget budget(0.01, 10);
  budget.start(5 * kSecond);
  EXPECT_EQ(budget.room(5 * kSecond), 0);
  EXPECT_NEAR(budget.room(6 * kSecond), 0.01 * kSecond, 1);
  EXPECT_NEAR(budget.room(1000 * kSecond), 0.1 * kSecond, 1);
  EXPECT_NEAR(budget.most(), 0.1 * kSecond, 1);
}

TEST(Budget, WhatWasSpentComesBackAfterAWindow) {
  Budget budget(0.01, 10);
  budget.start(0);
  budget.spend(20 * kSecond, kSecond / 10);
  EXPECT_NEAR(budget.room(20 * kSecond), 0, 1);
  EXPECT_NEAR(budget.room(29 * kSecond), 0, 1);
  EXPECT_NEAR(budget.used(29 * kSecond), 0.01, 1e-6);
  EXPECT_NEAR(budget.room(31 * kSecond), 0.1 * kSecond, 1);
  EXPECT_EQ(budget.used(31 * kSecond), 0);
}

// Whoever asks for the share of the window does not move it for the owner.
TEST(Budget, TheWindowGoesOnWhileTheOwnerIsIdle) {
  Budget budget(0.01, 10);
  budget.start(0);
  budget.spend(20 * kSecond, kSecond / 10);
  budget.spend(25 * kSecond, kSecond / 10);
  const Budget& seen = budget;
  EXPECT_NEAR(seen.used(25 * kSecond), 0.02, 1e-6);
  EXPECT_NEAR(seen.used(32 * kSecond), 0.01, 1e-6);
  EXPECT_EQ(seen.used(36 * kSecond), 0);
  EXPECT_EQ(seen.used(9999 * kSecond), 0);
  EXPECT_NEAR(budget.used(25 * kSecond), 0.02, 1e-6);
  budget.spend(26 * kSecond, kSecond / 10);
  EXPECT_NEAR(budget.used(26 * kSecond), 0.03, 1e-6);
  // The owner's clock is ahead of that of a snapshot that began before.
  EXPECT_NEAR(budget.used(26 * kSecond - 1), 0.03, 1e-6);
}

TEST(Budget, AShortLifeIsItsOwnWindow) {
  Budget budget(0.01, 10);
  budget.start(100 * kSecond);
  EXPECT_EQ(budget.used(100 * kSecond), 0);
  budget.spend(101 * kSecond, kSecond / 10);
  EXPECT_NEAR(budget.used(102 * kSecond), 0.05, 1e-6);
  // What the next thread shows is its own.
  budget.start(102 * kSecond);
  EXPECT_EQ(budget.used(103 * kSecond), 0);
}

TEST(Budget, TooMuchIsPaidBackFirst) {
  Budget budget(0.01, 10);
  budget.start(0);
  budget.spend(20 * kSecond, kSecond);  // Ten times what was there.
  EXPECT_LT(budget.room(29 * kSecond), 0);
  // The window has forgotten it after ten seconds, the budget has not.
  EXPECT_LT(budget.room(99 * kSecond), 0);
  EXPECT_GT(budget.room(101 * kSecond), 0);
}

TEST(Budget, ALaterThreadPaysBackToo) {
  Budget budget(0.01, 10);
  budget.start(0);
  budget.spend(20 * kSecond, kSecond);
  budget.start(40 * kSecond);
  EXPECT_LT(budget.room(90 * kSecond), 0);
  EXPECT_GT(budget.room(101 * kSecond), 0);
}

TEST(Budget, SavingsStartAfreshWithDebtsOnly) {
  Savings savings(0.01);
  savings.start(0);
  savings.spend(kSecond);  // After 100 s it is paid for.
  savings.start(100 * kSecond);
  EXPECT_NEAR(savings.room(101 * kSecond), 0.01 * kSecond, 1);
}

TEST(Budget, NoLimitIsNoLimit) {
  Budget budget(-1, 10);
  budget.start(0);
  budget.spend(1, 100 * kSecond);
  EXPECT_GT(budget.room(2), 1e18);
  EXPECT_FALSE(budget.limited());
}

// Whoever asks before spending never exceeds the share in any window.
TEST(Budget, NoWindowHoldsMoreThanTheShare) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Budget budget(0.01, 1);
    budget.start(0);
    std::deque<std::pair<std::int64_t, std::int64_t>> spent;
    std::int64_t now = 0, in_window = 0, times = 0;
    for (std::uint64_t n = 0; n < 20000; ++n) {
      const std::uint64_t bits = derive_seed(seed, n);
      now +=
          1 + uniform_below(bits, n % 700 == 0 ? 3 * kSecond : kSecond / 500);
      const std::int64_t cost =
          1 + uniform_below(mix_bits(bits), kSecond / 900);
      if (static_cast<double>(cost) > budget.room(now)) continue;
      budget.spend(now, cost);
      spent.emplace_back(now, cost);
      in_window += cost;
      ++times;
      while (spent.front().first <= now - kSecond) {
        in_window -= spent.front().second;
        spent.pop_front();
      }
      ASSERT_LE(in_window, kSecond / 100) << n;
    }
    EXPECT_GT(times, 100);
  }
}

TEST(Savings, ArePaidInForEver) {
  Savings savings(0.001);
  savings.start(0);
  EXPECT_NEAR(savings.room(1000 * kSecond), 1.0 * kSecond, 1);
  savings.spend(2 * kSecond);
  EXPECT_LT(savings.room(1999 * kSecond), 0);
  EXPECT_GT(savings.room(2001 * kSecond), 0);
}

TEST(CostModel, LearnsAndLeansToTheHighSide) {
  CostModel cost(1);
  for (int n = 0; n < 100; ++n) cost.learn(1e6, 3'000'000 + 100'000 * (n % 3));
  EXPECT_GT(cost.predict(1e6), 3.1e6);
  EXPECT_LT(cost.predict(1e6), 4.5e6);
  cost.learn(1e6, 100'000'000);  // The thread was put to sleep.
  EXPECT_GT(cost.predict(1e6), 1e7);
  for (int n = 0; n < 60; ++n) cost.forget();
  EXPECT_LT(cost.predict(1e6), 5e6);
}

}  // namespace
}  // namespace attnguard::runtime_internal
