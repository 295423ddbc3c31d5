#include "guard/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace attnguard {
namespace {

// Replay lines carry a seed: the numbers behind it may never change.
TEST(Rng, GivesTheSameNumbersForEver) {
  // The first outputs of SplitMix64 seeded with 0, as published.
  EXPECT_EQ(mix_bits(0), 0xe220a8397b1dcdafull);
  EXPECT_EQ(mix_bits(0x9e3779b97f4a7c15ull), 0x6e789e6aa1b965f4ull);
  EXPECT_EQ(mix_bits(2 * 0x9e3779b97f4a7c15ull), 0x06c45d188009454full);
  static_assert(mix_bits(1) == mix_bits(1));
}

TEST(Rng, SeparatesSeedsAndCoordinates) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (std::uint64_t part = 0; part < 100; ++part)
      seen.insert(derive_seed(seed, part));
  EXPECT_EQ(seen.size(), 10000u);
  EXPECT_NE(derive_seed(1, 2), derive_seed(2, 1));
}

TEST(Rng, DrawsEveryValueBelowABoundAboutEquallyOften) {
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 70000; ++i) {
    const std::int64_t draw = uniform_below(mix_bits(i), 7);
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 7);
    ++counts[static_cast<std::size_t>(draw)];
  }
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);  // 5 sigma
  EXPECT_EQ(uniform_below(~0ull, 1), 0);
  EXPECT_EQ(uniform_below(~0ull, 0), 0);
}

TEST(Rng, NearNormalHasMeanZeroVarianceOneAndShortTails) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 200000;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = near_normal(mix_bits(i));
    ASSERT_LE(std::abs(x), 2.45);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.012);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_GT(near_normal(~0ull), 2.44);
  EXPECT_LT(near_normal(0), -2.44);
}

}  // namespace
}  // namespace attnguard
