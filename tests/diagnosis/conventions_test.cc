// Other readings of a mask and a scale.
#include "guard/diagnosis/conventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/problem/random_problem.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> masks_for(const std::string& mask) {
  std::vector<std::string> masks;
  for (const Convention& convention : alternative_conventions(
           problem_of("seq_len_q=8 seq_len_kv=24 head_dim=16 mask=" + mask)))
    masks.push_back(convention.problem.mask.text());
  return masks;
}

TEST(Conventions, SwapWhatEnginesSwap) {
  const auto expect = [](const std::string& mask, const std::string& other) {
    EXPECT_THAT(masks_for(mask), Contains(other)) << mask;
  };
  expect("causal_top_left", "causal_bottom_right");
  expect("causal_bottom_right", "causal_top_left");
  expect("sliding_window(left=4,right=2)", "sliding_window(left=5,right=2)");
  expect("sliding_window(left=4,right=2)", "sliding_window(left=3,right=2)");
  expect("sliding_window(left=4,right=2)", "sliding_window(left=4,right=3)");
  expect("sliding_window(left=4,right=2)", "sliding_window(left=4,right=1)");
  expect("sliding_window(left=4,right=2)", "sliding_window(left=-1,right=2)");
  expect("sliding_window(left=4,right=0)", "sliding_window(left=4,right=4)");
  expect("sliding_window(left=4,right=0)",
         "sliding_window_top_left(left=4,right=0)");
  expect("sliding_window_keys(keys=5)", "sliding_window_keys(keys=6)");
  expect("sliding_window_keys(keys=5)", "sliding_window_keys(keys=4)");
  expect("sliding_window_keys(keys=5)", "sliding_window_two_sided(width=4)");
  expect("sliding_window_two_sided(width=4)", "sliding_window_keys(keys=5)");
  expect("sliding_window_two_sided(width=4)", "window_symmetric(width=4)");
  expect("window_symmetric(width=9)", "sliding_window_two_sided(width=9)");
  expect("window_symmetric(width=9)", "window_symmetric(width=11)");
  expect("encoder_window(width=5)", "encoder_window(width=6)");
  expect("chunked_local_from_padding(chunk=8,pad=3)", "chunked_local(chunk=8)");
  expect("chunked_local(chunk=8)+left_padding(pad=3)",
         "chunked_local_from_padding(chunk=8,pad=3)+left_padding(pad=3)");
  expect("left_padding(pad=3)", "left_padding_keys(pad=3)");
  expect("left_padding_keys(pad=3)", "left_padding(pad=3)");
  expect("prefix_lm(prefix=5)", "prefix_lm(prefix=6)");
  expect("tree(parents=-1:0:0)", "causal_bottom_right");
  expect("causal_bottom_right+documents(lengths=9:15)", "causal_bottom_right");
  expect("causal_bottom_right+documents(lengths=9:15)",
         "documents(lengths=9:15)");
  expect("causal_bottom_right", "full");
  expect("full", "causal_bottom_right");
  expect("full", "causal_top_left");
}

TEST(Conventions, SwapTheAlignmentOfWindowAndCausalMaskAtOnce) {
  EXPECT_THAT(
      masks_for("causal_bottom_right+sliding_window(left=4,right=0)"),
      Contains("causal_top_left+sliding_window_top_left(left=4,right=0)"));
}

TEST(Conventions, DoNotGoBelowWhatAParameterMayBe) {
  // None less than no key is not all keys, and no more than all there are.
  for (const Convention& convention : alternative_conventions(
           problem_of("seq_len=9 mask=sliding_window(left=0,right=-1)"))) {
    EXPECT_NE(convention.id, "window one less on the left");
    EXPECT_NE(convention.id, "window one more on the right");
    EXPECT_NE(convention.id, "window one less on the right");
  }
  EXPECT_THAT(masks_for("sliding_window_keys(keys=1)"),
              Not(Contains("sliding_window_keys(keys=0)")));
}

TEST(Conventions, KnowTheScales) {
  const auto scales_for = [](const std::string& line) {
    std::vector<double> scales;
    for (const Convention& convention :
         alternative_conventions(problem_of(line)))
      if (convention.problem.softmax_scale) {
        scales.push_back(*convention.problem.softmax_scale);
        EXPECT_NE(convention.statement.find("consistent with softmax_scale="),
                  std::string::npos);
      }
    return scales;
  };
  EXPECT_EQ(scales_for("seq_len=9 head_dim=16"), std::vector<double>{1});
  EXPECT_EQ(scales_for("seq_len=9 head_dim=1"), std::vector<double>{});
  EXPECT_EQ(alternative_conventions(
                problem_of("seq_len=9 head_dim=16 softmax_scale=1"))
                .back()
                .problem.scale(),
            0.25);
}

TEST(Conventions, AreValidProblemsOfTheSameShapesEachOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem = random_problem(seed);
    std::set<std::string> ids, lines;
    for (const Convention& convention : alternative_conventions(problem)) {
      EXPECT_TRUE(convention.problem.validate().ok());
      EXPECT_TRUE(ids.insert(convention.id).second) << convention.id;
      EXPECT_TRUE(lines.insert(convention.problem.text()).second);
      EXPECT_FALSE(convention.problem == problem);
      EXPECT_FALSE(convention.statement.empty());
      Problem same = convention.problem;
      same.mask = problem.mask;
      same.softmax_scale = problem.softmax_scale;
      EXPECT_EQ(same, problem);
    }
  }
}

}  // namespace
}  // namespace attnguard
