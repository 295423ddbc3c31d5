// Failures shrink until nothing can be taken from them, and runs stop when
// they are told to.
#include "guard/diagnosis/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "guard/diagnosis/quota.h"
#include "guard/pipeline.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::int64_t size_of(const Problem& problem) {
  std::int64_t size = 0;
  for (TensorRole role :
       {TensorRole::kQuery, TensorRole::kKey, TensorRole::kValue})
    size += problem.extent(role);
  return size;
}

TEST(ShrinkSteps, AreValidAndSmaller) {
  for (const PolicyProblem& each : default_policy().problems) {
    const Problem& problem = each.problem;
    for (const Problem& step : shrink_steps(problem)) {
      EXPECT_TRUE(step.validate().ok()) << step.text();
      EXPECT_LT(size_of(step), size_of(problem)) << step.text();
      EXPECT_EQ(step.dtype, problem.dtype);
    }
  }
}

TEST(ShrinkSteps, EndWhereAMapCanBeRead) {
  EXPECT_TRUE(shrink_steps(problem_of("seq_len=5 head_dim=16")).empty());
  for (const Problem& step :
       shrink_steps(problem_of("seq_len=7 head_dim=20"))) {
    EXPECT_GE(step.max_len_q(), 5);
    EXPECT_GE(step.max_len_kv(), 5);
    EXPECT_GE(step.head_dim_qk, 16);
  }
}

// builtin:tiled, which never sees more than so many keys.
Engine forgets_keys_from(std::int64_t first) {
  Engine engine = builtin("tiled");
  const AttentionCallback tiled = engine.run;
  engine.run = [tiled, first](const AttentionCall& call) {
    Problem shorter = *call.problem;
    for (std::int64_t& length : shorter.seq_len_kv)
      length = std::min(length, first);
    AttentionCall own = call;
    own.problem = &shorter;
    return tiled(own);
  };
  return engine;
}

ProblemResult failure(double seconds) {
  RunOptions options;
  options.checks = {"visibility"};
  options.diagnose = false;
  options.shrink_seconds = seconds;
  return verify_problem(
      forgets_keys_from(300),
      problem_of("batch=2 num_heads=4 num_kv_heads=2 seq_len_q=40 "
                 "seq_len_kv=700 head_dim=64 mask=full"),
      Settings{}, options);
}

TEST(Shrinking, FindsTheLengthFromWhichOnItFails) {
  const ProblemResult result = failure(60);
  ASSERT_EQ(result.verdict, Verdict::kViolation);
  const Problem smallest = problem_of(result.smallest_failing);
  EXPECT_EQ(smallest.seq_len_kv, std::vector<std::int64_t>{301});
  EXPECT_LE(smallest.max_len_q(), 5);
  EXPECT_EQ(smallest.num_heads, 1);
  EXPECT_EQ(smallest.batch, 1);
  EXPECT_EQ(smallest.head_dim_qk, 16);
}

TEST(Shrinking, TakesNoTimeWhenThereIsNone) {
  const ProblemResult result = failure(0);
  EXPECT_EQ(result.smallest_failing, result.problem_line);
}

TEST(DiagnosisQuota, WantsTheFirstOnesAndEveryNewSetOfChecks) {
  const auto result = [](const std::string& check) {
    ProblemResult made;
    made.checks.push_back({.check = check, .verdict = Verdict::kViolation});
    return made;
  };
  DiagnosisQuota quota;
  for (int i = 0; i <= DiagnosisQuota::kMostRepeated; ++i)
    EXPECT_TRUE(quota.wants(result("row-sum"))) << i;
  EXPECT_FALSE(quota.wants(result("row-sum")));
  EXPECT_TRUE(quota.wants(result("visibility")));
  EXPECT_FALSE(quota.wants(result("visibility")));
}

Policy three_problems() {
  Policy policy;
  for (const char* line : {"seq_len=5 head_dim=16", "seq_len=6 head_dim=16",
                           "seq_len=7 head_dim=16"})
    policy.problems.push_back({problem_of(line), {}});
  return policy;
}

TEST(StoppedRun, NamesWhatIsLeft) {
  int problems = 0;
  RunOptions options;
  options.progress = [&](std::size_t, std::size_t) { ++problems; };
  options.stop = [&] { return std::string(problems < 2 ? "" : "enough"); };
  const RunResult run = verify(builtin("tiled"), three_problems(), options);
  ASSERT_EQ(run.problems.size(), 3u);
  EXPECT_EQ(run.problems[1].verdict, Verdict::kPass);
  EXPECT_FALSE(run.problems[1].unchecked);
  EXPECT_TRUE(run.problems[2].unchecked);
  EXPECT_EQ(run.problems[2].number, 3);
  EXPECT_EQ(run.problems[2].note, "not checked: enough");
  EXPECT_EQ(run.verdict, Verdict::kInconclusive);
}

TEST(StoppedRun, AProblemThatItCutShortIsUncheckedAndFindingsStay) {
  bool stopped = false;
  for (const char* name : {"tiled", "wrong_axis"}) {
    Engine engine = builtin(name);
    const AttentionCallback own = engine.run;
    int calls = 0;
    engine.run = [&](const AttentionCall& call) {
      stopped = ++calls > 6;
      if (stopped) return Status(StatusCode::kEngineFailure, "enough");
      return own(call);
    };
    RunOptions options;
    options.stop = [&] { return std::string(stopped ? "enough" : ""); };
    Policy policy = three_problems();
    const RunResult run = verify(engine, policy, options);
    const bool is_right = std::string(name) == "tiled";
    EXPECT_EQ(run.problems[0].unchecked, is_right);
    EXPECT_EQ(run.problems[0].verdict,
              is_right ? Verdict::kInconclusive : Verdict::kViolation);
    EXPECT_TRUE(run.problems[2].unchecked);
    stopped = false;
  }
}

}  // namespace
}  // namespace attnguard
