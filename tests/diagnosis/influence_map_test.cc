#include "guard/diagnosis/influence_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/diagnosis/shrink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> map_of(const char* engine, const std::string& line) {
  const Problem problem = problem_of(line);
  const auto map = draw_influence_map(builtin(engine), problem, 3, 0, 0, 0, 0);
  return map.ok() ? map.value().cells : std::vector<std::string>{};
}

TEST(InfluenceMap, DrawsTheStoryOfTheWrongAxis) {
  const char* line = "seq_len=5 mask=causal_top_left";
  EXPECT_THAT(map_of("textbook", line),
              ElementsAre("#....", "##...", "###..", "####.", "#####"));
  EXPECT_THAT(map_of("wrong_axis", line),
              ElementsAre("#XXXX", "##XXX", "###XX", "####X", "#####"));
}

// A token is its key, its value and its own row's query: row 2 still moves
// with token 2 through its query, row 1 does not as it sees one key only.
TEST(InfluenceMap, MarksAllowedTokensThatDoNotMoveTheRow) {
  EXPECT_THAT(map_of("drops_last_key", "seq_len=3 mask=causal_top_left"),
              ElementsAre("#..", "#o.", "###"));
}

TEST(InfluenceMap, IsAWindowAroundTheFindingInALongProblem) {
  const Problem problem = problem_of("seq_len=100 mask=causal_top_left");
  const auto map = draw_influence_map(builtin("causal_off_by_one"), problem, 3,
                                      0, 0, 50, 51, 8);
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map.value().cells.size(), 8u);
  EXPECT_EQ(map.value().first_row, 46);
  EXPECT_EQ(map.value().first_column, 47);
  EXPECT_EQ(map.value().cells[4], "####X...");
}

Status no_map_of(const Engine& engine, const std::string& line,
                 std::int64_t batch = 0) {
  return draw_influence_map(engine, problem_of(line), 3, batch, 0, 0, 0)
      .status();
}

TEST(InfluenceMap, SaysWhyThereIsNone) {
  const std::string line = "seq_len=5 mask=causal_top_left";
  const Status threw = no_map_of(builtin("throws"), line);
  EXPECT_EQ(threw.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(threw.message(), HasSubstr("this engine always throws"));

  Engine failing = builtin("tiled");
  failing.run = [](const AttentionCall&) {
    return unsupported("no kernel for head_dim 64");
  };
  const Status failed = no_map_of(failing, line);
  EXPECT_EQ(failed.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(failed.message(), HasSubstr("no kernel for head_dim 64"));

  Engine changing = builtin("tiled");
  changing.capabilities.deterministic = false;
  const Status noisy = no_map_of(changing, line);
  EXPECT_EQ(noisy.code(), StatusCode::kUnsupported);
  EXPECT_THAT(noisy.message(), HasSubstr("does not repeat itself"));
}

TEST(InfluenceMap, OfAnEmptyEntryIsNone) {
  const std::string line = "batch=2 seq_len_q=3,0 seq_len_kv=0,4 mask=full";
  const Status no_key = no_map_of(builtin("tiled"), line, 0);
  EXPECT_EQ(no_key.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(no_key.message(), HasSubstr("batch entry 0 has no key"));
  const Status no_query = no_map_of(builtin("tiled"), line, 1);
  EXPECT_EQ(no_query.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(no_query.message(), HasSubstr("batch entry 1 has no query"));
}

TEST(Shrink, CandidatesAreValidSmallestFirstAndKeepTheMask) {
  const Problem problem = problem_of(
      "batch=3 num_heads=6 num_kv_heads=2 seq_len_q=200,100,3 seq_len_kv=300 "
      "head_dim=80 dtype=bf16 mask=causal_bottom_right");
  const auto candidates = shrink_candidates(problem);
  ASSERT_FALSE(candidates.empty());
  std::int64_t before = 0;
  for (const Problem& candidate : candidates) {
    EXPECT_TRUE(candidate.validate().ok()) << candidate.text();
    EXPECT_EQ(candidate.mask, problem.mask);
    EXPECT_EQ(candidate.dtype, problem.dtype);
    const std::int64_t size = candidate.extent(TensorRole::kQuery) +
                              candidate.extent(TensorRole::kKey) +
                              candidate.extent(TensorRole::kValue);
    EXPECT_GE(size, before);
    before = size;
  }
  EXPECT_EQ(candidates.front().max_len_q(), 5);
}

TEST(SmallestFailing, IsFoundDrawnAndReplaysWithTheSameVerdict) {
  Settings settings;
  settings.seed = 5;
  const ProblemResult result = verify_problem(
      builtin("wrong_axis"),
      problem_of("batch=2 num_heads=4 seq_len=100 mask=causal_bottom_right"),
      settings);
  ASSERT_EQ(result.verdict, Verdict::kViolation);
  ASSERT_FALSE(result.smallest_failing.empty());
  EXPECT_EQ(problem_of(result.smallest_failing).max_len_q(), 5);
  ASSERT_TRUE(result.map.has_value());
  EXPECT_EQ(result.map->cells.front(), "#XXXX");
  EXPECT_THAT(result.replay,
              testing::AllOf(testing::HasSubstr("--engine builtin:wrong_axis"),
                             testing::HasSubstr("--seed 5"),
                             testing::HasSubstr(result.smallest_failing)));
  const ProblemResult again =
      run_problem(builtin("wrong_axis"), result.smallest_failing, {}, 5);
  EXPECT_EQ(again.verdict, Verdict::kViolation);
}

}  // namespace
}  // namespace attnguard
