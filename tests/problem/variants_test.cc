// The problem's variants: how they are written, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "guard/problem/problem.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

TEST(ProblemVariants, AreWrittenAndReadBack) {
  for (const char* line : {
           "num_heads=4 seq_len=9 head_dim=8 softcap=50 mask=full",
           "num_heads=6 seq_len=9 head_dim=8 alibi_max_bias=8",
           "num_heads=2 seq_len=9 head_dim=8 sinks=0.5,-1",
           "num_heads=2 seq_len=9 head_dim=8 sinks=0 empty_row=mean",
           "num_heads=2 seq_len=9 head_dim=8 mask_form=inverted",
           "num_heads=2 num_kv_heads=1 seq_len=9 head_dim_qk=12 head_dim_v=8 "
           "value_in_key=true",
           "batch=2 num_heads=2 seq_len=9,3 head_dim=8 packed=true "
           "packed_padding=4 layout=bshd",
           "batch=2 num_heads=2 seq_len=33,40 head_dim=8 block_size=16 "
           "shared_prefix=32",
       }) {
    const Problem problem = problem_of(line);
    const Result<Problem> again = Problem::parse(problem.text());
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again.value(), problem) << line;
    EXPECT_NE(problem.text(),
              problem_of("num_heads=2 seq_len=9 head_dim=8").text());
  }
}

struct Refused {
  const char* line;
  const char* message;
};

TEST(ProblemVariants, WhatMakesNoSenseIsRefusedWithTheField) {
  for (const Refused& refused : {
           Refused{"softcap=0", "softcap must be a number above 0"},
           Refused{"alibi_max_bias=-1", "alibi_max_bias must be"},
           Refused{"num_heads=4 sinks=1,2", "one for all heads, or one per"},
           Refused{"sinks=1,x", "comma-separated numbers"},
           Refused{"sinks=1000", "sinks must be numbers from -100 to 100"},
           Refused{"mask_form=bool", "unknown form 'bool'"},
           Refused{"head_dim=8 value_in_key=true", "head_dim_v < head_dim_qk"},
           Refused{"packed=yes", "expected true or false"},
           Refused{"packed_padding=3", "packed_padding needs packed=true"},
           Refused{"block_size=-1", "block_size=-1: must be at least 0"},
           Refused{"block_size=8 layout=sbhd", "has no paged form"},
           Refused{"shared_prefix=8", "shared_prefix needs block_size"},
           Refused{"block_size=16 seq_len=40 shared_prefix=8",
                   "not a multiple of block_size"},
           Refused{"block_size=16 seq_len=20 shared_prefix=32",
                   "longer than a sequence"},
           Refused{"seq_len=4 head_dim=8 packed=true query_strides=32,32,8,1",
                   "packed and paged tensors have the strides"},
       }) {
    const Result<Problem> problem = Problem::parse(refused.line);
    ASSERT_FALSE(problem.ok()) << refused.line;
    EXPECT_THAT(problem.status().message(), HasSubstr(refused.message));
  }
}

TEST(ProblemVariants, AlibiSlopesAreThePapers) {
  const Problem eight = problem_of("num_heads=8 seq_len=4 alibi_max_bias=8");
  for (std::int64_t h = 0; h < 8; ++h)
    EXPECT_DOUBLE_EQ(eight.alibi_slope(h),
                     std::exp2(-static_cast<double>(h + 1)));
  // Six heads: four of the sequence for 4, then every other one for 8.
  const Problem six = problem_of("num_heads=6 seq_len=4 alibi_max_bias=8");
  const double slopes[] = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  for (std::int64_t h = 0; h < 6; ++h)
    EXPECT_DOUBLE_EQ(six.alibi_slope(h), slopes[h]) << h;
  EXPECT_DOUBLE_EQ(six.largest_alibi_slope(), 0.5);
  EXPECT_EQ(problem_of("num_heads=6 seq_len=4").alibi_slope(3), 0);
}

TEST(ProblemVariants, SinksAreOneForAllOrOnePerHead) {
  EXPECT_EQ(problem_of("num_heads=2 seq_len=4 sinks=0.5").sink(1), 0.5);
  EXPECT_EQ(problem_of("num_heads=2 seq_len=4 sinks=0.5,-3").sink(1), -3);
  EXPECT_EQ(problem_of("num_heads=2 seq_len=4").sink(1),
            -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace attnguard
