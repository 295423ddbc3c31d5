#include "guard/runtime/odds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

TEST(Odds, AreThoseOfIndependentDraws) {
  // 1 - (1 - 0.5 * 0.1)^4
  EXPECT_NEAR(chance_per_look(0.1, 4), 1 - std::pow(0.95, 4), 1e-15);
  EXPECT_EQ(chance_per_look(1, 4), 1);
  EXPECT_EQ(chance_per_look(0, 4), 0);
  EXPECT_EQ(chance_per_look(0.1, 0), 0);
  // So small that 1 - f rounds to 1.
  EXPECT_NEAR(chance_per_look(1e-20, 4) / 2e-20, 1, 1e-12);
}

TEST(Odds, CountTheCallsUntilTheCertaintyIsReached) {
  for (double chance : {1.0, 0.3, 1e-6})
    for (std::int64_t every : {1, 7, 1000}) {
      const double calls = calls_until_seen(chance, every, 0.999);
      EXPECT_GE(certainty_after(chance, every, calls), 0.999 - 1e-12);
      if (calls <= 1) continue;
      EXPECT_LT(certainty_after(chance, every, calls - 1), 0.999);
    }
  EXPECT_EQ(calls_until_seen(1, 1, 0.999), 1);
  EXPECT_EQ(calls_until_seen(1, 0, 0.999), INFINITY);
  EXPECT_EQ(calls_until_seen(0, 10, 0.999), INFINITY);
  // ln(0.001) / ln(1 - 1/1000)
  EXPECT_EQ(calls_until_seen(1, 1000, 0.999), 6905);
}

// The formula against the sampling that it describes: calls are looked at with
// chance 1/every, and each look draws rows of which half go elsewhere.
TEST(Odds, AgreeWithASimulation) {
  constexpr double kWrong = 0.05;
  constexpr std::int64_t kRows = 3, kEvery = 4;
  const double chance = chance_per_look(kWrong, kRows);
  const double calls = calls_until_seen(chance, kEvery, 0.9);
  constexpr std::uint64_t kSeed = 77;
  int seen = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::uint64_t bits = derive_seed(kSeed, static_cast<std::uint64_t>(trial));
    const auto uniform = [&bits] {
      bits = mix_bits(bits);
      return static_cast<double>(bits >> 11) * 0x1p-53;
    };
    bool found = false;
    for (double n = 0; n < calls && !found; ++n) {
      if (uniform() * static_cast<double>(kEvery) >= 1) continue;
      for (std::int64_t row = 0; row < kRows; ++row)
        found |= uniform() < kFairShareOfDraws && uniform() < kWrong;
    }
    seen += found;
  }
  // Five standard deviations.
  EXPECT_NEAR(static_cast<double>(seen) / kTrials,
              certainty_after(chance, kEvery, calls),
              5 * std::sqrt(0.9 * 0.1 / kTrials))
      << "seed " << kSeed;
}

}  // namespace
}  // namespace attnguard
