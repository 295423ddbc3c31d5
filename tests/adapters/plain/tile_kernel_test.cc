#include "adapters/plain/tile_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "adapters/plain/lanes.h"
#include "guard/base/rng.h"

namespace attnguard {
namespace {

template <typename Real>
Real exp_of(Real x) {
  Vector<Real> lanes = Vector<Real>{} + x;
  exp_lanes<Real>(lanes);
  return lanes[1];
}

template <typename Real>
class ExpLanes : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ExpLanes, Reals);

TYPED_TEST(ExpLanes, IsExactAtZeroAndFarBelow) {
  constexpr TypeParam kInf = std::numeric_limits<TypeParam>::infinity();
  EXPECT_EQ(exp_of<TypeParam>(0), 1);
  EXPECT_EQ(exp_of<TypeParam>(-TypeParam{0}), 1);
  EXPECT_EQ(exp_of<TypeParam>(-kInf), 0);
  EXPECT_EQ(exp_of<TypeParam>(std::numeric_limits<TypeParam>::lowest()), 0);
  EXPECT_EQ(exp_of<TypeParam>(-800), 0);
  EXPECT_TRUE(std::isnan(
      exp_of<TypeParam>(std::numeric_limits<TypeParam>::quiet_NaN())));
}

TYPED_TEST(ExpLanes, StaysWithinTwoUnitsInTheLastPlace) {
  const TypeParam lowest = Lanes<TypeParam>::kExpLowest;
  constexpr long double kUlp = std::numeric_limits<TypeParam>::epsilon();
  long double worst = 0;
  for (int i = 0; i <= 200000; ++i) {
    const TypeParam x = lowest * static_cast<TypeParam>(i) / 200000;
    const long double wanted = std::exp(static_cast<long double>(x));
    const long double error = std::abs(exp_of(x) - wanted) / wanted / kUlp;
    ASSERT_LT(error, 2.0L) << x;
    worst = std::max(worst, error);
  }
  EXPECT_GT(worst, 0.0L);
}

// Random tiles, some rows of which see parts of some tiles only.
template <typename Real>
std::vector<Real> attend_random(InstructionSet set) {
  constexpr std::int64_t kRows = 37, kKeys = 150, kDim = 19;
  constexpr std::int64_t kChannels = 2 * kChannelBlock<Real>;
  constexpr std::int64_t kPadded = 3 * kTileKeys;
  std::uint64_t count = 0;
  const auto random = [&](std::int64_t size) {
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (Real& x : values)
      x = static_cast<Real>(near_normal(mix_bits(count++)));
    return values;
  };
  const auto key = random(kPadded * kDim);
  const auto value = random(kPadded * kChannels);
  const auto query = random(kTileQueries * kDim);
  std::vector<KeyRanges> allowed(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) {
    allowed[static_cast<std::size_t>(i)].append(0, i % 5);
    allowed[static_cast<std::size_t>(i)].append(i + 20, i % 3 ? 150 : i + 70);
  }
  std::vector<Real> scores(kTileQueries * kTileKeys);
  std::vector<Real> output(static_cast<std::size_t>(kTileQueries * kChannels));
  attend({key.data(), value.data(), kKeys, kDim, kChannels},
         {kRows, Real(0.25), query.data(), allowed.data(), scores.data(),
          output.data()},
         set);
  output.resize(static_cast<std::size_t>(kRows * kChannels));
  return output;
}

template <typename Real>
class TileKernel : public testing::Test {};
TYPED_TEST_SUITE(TileKernel, Reals);

TYPED_TEST(TileKernel, GivesTheSameBitsOnEveryInstructionSet) {
  const auto baseline = attend_random<TypeParam>(InstructionSet::kBaseline);
  EXPECT_NE(baseline.front(), 0);
  EXPECT_EQ(baseline, attend_random<TypeParam>(InstructionSet::kWidest));
}

}  // namespace
}  // namespace attnguard
