#include "guard/runtime/live_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/problems.h"

namespace attnguard::runtime_internal {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ValueLimits, LeaveRoomForRoundingOnly) {
  const Problem problem = problem_of("seq_len=8 head_dim=2 dtype=fp16");
  const std::vector<double> low = {-1, 0.5}, high = {2, 0.75};
  const ValueLimits limits(problem, default_numerics(problem), 8, low, high);
  const ValueLimit limit = limits.of(1);
  EXPECT_EQ(limit.low, 0.5);
  EXPECT_EQ(limit.high, 0.75);
  EXPECT_GT(limit.slack, 0);
  EXPECT_LT(limit.slack, 0.01);
  EXPECT_LE(limit.outside(0.6), 0);
  EXPECT_LE(limit.outside(0.5 - limit.slack / 2), limit.slack);
  EXPECT_GT(limit.outside(0.5 - 2 * limit.slack), limit.slack);
  EXPECT_GT(limit.outside(0.75 + 2 * limit.slack), limit.slack);
  EXPECT_GT(limit.outside(-INFINITY), limit.slack);
  EXPECT_FALSE(limit.outside(kNan) <= limit.slack);
}

TEST(ValueLimits, ReachToZeroBesideASink) {
  const Problem problem =
      problem_of("num_heads=1 seq_len=8 head_dim=2 sinks=0.5");
  const std::vector<double> low = {-2, 0.5}, high = {-1, 0.75};
  const ValueLimits limits(problem, default_numerics(problem), 8, low, high);
  EXPECT_EQ(limits.of(0).high, 0);
  EXPECT_EQ(limits.of(1).low, 0);
}

TEST(WorstChannel, IsTheOneThatRoundingExplainsLeast) {
  const Problem problem = problem_of("seq_len=1 head_dim=3");
  const Numerics numerics = default_numerics(problem);
  ReferenceRow row;
  row.num_keys = 1;
  row.output = row.weighted_abs = row.total_abs = {1, 1, 1};
  row.spread = {0, 0, 0};
  row.mass = 1;
  std::vector<double> output = {1, 1.5, 1.25};
  const WorstChannel worst = worst_channel(problem, numerics, row, output);
  EXPECT_EQ(worst.channel, 1);
  EXPECT_GT(worst.ratio, 1);
  EXPECT_GT(worst.bound, 0);
  EXPECT_THAT(difference_finding({0, 0, 0}, worst, 1.5, 1).message,
              HasSubstr("query 0: output channel 1 is 1.5, fp64 attention "
                        "gives 1 (rounding explains "));
  EXPECT_EQ(worst_channel(problem, numerics, row, row.output).ratio, 0);
  output[0] = kNan;
  EXPECT_EQ(worst_channel(problem, numerics, row, output).channel, 0);
  EXPECT_TRUE(std::isnan(worst_channel(problem, numerics, row, output).ratio));
}

TEST(FiniteRow, IsNotOneWhoseScoresOverflowTheEnginesArithmetic) {
  Numerics numerics;
  numerics.accumulator = Dtype::kFp16;
  ReferenceRow row;
  EXPECT_TRUE(finite_row(numerics, row)) << "no keys";
  row.num_keys = 1;
  row.output = {1};
  row.score_magnitude = 60000;
  EXPECT_TRUE(finite_row(numerics, row));
  row.score_magnitude = 70000;
  EXPECT_FALSE(finite_row(numerics, row));
  row.score_magnitude = 1;
  row.lse = kNan;
  EXPECT_FALSE(finite_row(numerics, row));
}

}  // namespace
}  // namespace attnguard::runtime_internal
