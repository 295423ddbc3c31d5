#include "ci/run/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "guard/pipeline.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

Result<ShardOfRun> shard(const std::string& text,
                         const Environment& environment = {}) {
  return read_shard(text, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

void expect_shard(const Result<ShardOfRun>& shard, std::int64_t index,
                  std::int64_t count) {
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  EXPECT_EQ(shard.value().index, index);
  EXPECT_EQ(shard.value().count, count);
}

TEST(ReadShard, TakesAPairOrTheEnvironments) {
  expect_shard(shard("2/3"), 2, 3);
  expect_shard(shard("auto"), 1, 1);
  expect_shard(
      shard("auto", {{"GTEST_SHARD_INDEX", "0"}, {"GTEST_TOTAL_SHARDS", "4"}}),
      1, 4);
  expect_shard(shard("auto", {{"CI_NODE_INDEX", "4"}, {"CI_NODE_TOTAL", "4"}}),
               4, 4);
  expect_shard(shard("auto", {{"CI_NODE_TOTAL", "1"}}), 1, 1);
}

TEST(ReadShard, SaysWhatIsWrong) {
  for (const char* text : {"0/3", "4/3", "1/0", "a/b", "1", "1/", "/2", "-1/2"})
    EXPECT_THAT(shard(text).status().message(), HasSubstr("--shard")) << text;
  EXPECT_THAT(
      shard("auto", {{"GTEST_SHARD_INDEX", "4"}, {"GTEST_TOTAL_SHARDS", "4"}})
          .status()
          .message(),
      HasSubstr("GTEST_SHARD_INDEX"));
  EXPECT_THAT(shard("auto", {{"CI_NODE_TOTAL", "2"}}).status().message(),
              HasSubstr("CI_NODE_INDEX is not set"));
}

TEST(ShareOut, IsAPartitionAndEvenForRandomCosts) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> costs(random() % 200);
    for (double& cost : costs) cost = static_cast<double>(random() % 1000);
    const std::int64_t count = 1 + random() % 9;
    const auto parts = share_out(costs, count);
    EXPECT_EQ(parts, share_out(costs, count));
    ASSERT_EQ(parts.size(), costs.size());
    std::vector<double> load(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < costs.size(); ++i) {
      ASSERT_GE(parts[i], 0);
      ASSERT_LT(parts[i], count);
      load[static_cast<std::size_t>(parts[i])] += costs[i];
    }
    const double dearest =
        costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end());
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_LE(*most - *least, dearest);
  }
}

TEST(ShareOut, EveryShardGetsSomethingThatCosts) {
  const auto parts = share_out({0, 0, 5, 0, 1, 0, 3}, 3);
  EXPECT_NE(parts[2], parts[4]);
  EXPECT_NE(parts[2], parts[6]);
  EXPECT_NE(parts[4], parts[6]);
}

TEST(MeasuredCosts, AreWhatWasMeasuredAndOnItsScaleElsewhere) {
  RunResult run;
  run.engine = "e";
  for (const char* line : {"seq_len=64", "seq_len=128"}) {
    ProblemResult& result = run.problems.emplace_back();
    result.problem = problem_of(line);
    result.problem_line = result.problem.text();
    result.engine_seconds = 2 * estimated_cost(result.problem);
    result.guard_seconds = estimated_cost(result.problem);
  }
  run.problems[1].engine_seconds *= 1.5;
  const MeasuredCosts costs({run});
  const Problem& second = run.problems[1].problem;
  EXPECT_DOUBLE_EQ(costs.of("e", second), 4 * estimated_cost(second));
  const Problem other = problem_of("seq_len=512");
  const double scale = costs.of("e", other) / estimated_cost(other);
  EXPECT_GT(scale, 3);
  EXPECT_LT(scale, 4);
  EXPECT_DOUBLE_EQ(costs.of("another", second), scale * estimated_cost(second));
  EXPECT_FALSE(MeasuredCosts::read("/nonexistent.json").ok());
}

TEST(Estimates, GrowWithTheProblem) {
  EXPECT_LT(estimated_cost(problem_of("seq_len=64")),
            estimated_cost(problem_of("seq_len=4096")));
  const Problem large = problem_of("seq_len=4096 dtype=fp32");
  EXPECT_LT(estimated_bytes(problem_of("seq_len=64 dtype=fp16"), false),
            estimated_bytes(large, false));
  EXPECT_LT(estimated_bytes(large, false), estimated_bytes(large, true));
}

TEST(ReadSize, KnowsUnits) {
  EXPECT_EQ(read_size("--max-memory", "512M").value(), 512 << 20);
  EXPECT_EQ(read_size("--max-memory", "4G").value(), std::int64_t{4} << 30);
  EXPECT_EQ(read_size("--max-memory", "1000").value(), 1000);
  for (const char* text : {"", "G", "-1G", "0", "1.5G", "4g", "9999999999T"})
    EXPECT_THAT(read_size("--max-memory", text).status().message(),
                HasSubstr("--max-memory"))
        << text;
  EXPECT_EQ(size_text(std::int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(size_text(700), "700 bytes");
}

}  // namespace
}  // namespace attnguard
