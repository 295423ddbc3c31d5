#include "ci/run/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/run/replay.h"
#include "guard/pipeline.h"
#include "tests/report/sample_results.h"

namespace attnguard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SavedFailure sample_failure() {
  SavedFailure failure;
  failure.engine = "ggml:flash,kv=f16";
  failure.problem = "batch=1 seq_len_q=5";
  failure.checks = {"row-sum", "visibility"};
  failure.seed = UINT64_MAX;
  failure.coverage = "full";
  failure.policy = "my policy.yaml";
  failure.policy_settings = "0123456789abcdef";
  failure.found_on = "batch=2 seq_len_q=300";
  return failure;
}

TEST(SavedFailure, ReadsWhatItWrites) {
  const std::string text = sample_failure().text();
  const Result<SavedFailure> read = SavedFailure::parse(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().text(), text);
  EXPECT_EQ(read.value().seed, UINT64_MAX);
  EXPECT_THAT(read.value().checks, ElementsAre("row-sum", "visibility"));
  EXPECT_EQ(read.value().policy, "my policy.yaml");
}

TEST(SavedFailure, SaysWhatIsWrongAndWhere) {
  const std::string title = "# attnguard failure 1\n";
  const auto message = [](const std::string& text) {
    return SavedFailure::parse(text).status().message();
  };
  EXPECT_THAT(message(""), HasSubstr("no saved failure"));
  EXPECT_THAT(message("engine: a\n"), HasSubstr("no saved failure"));
  EXPECT_THAT(message(title + "engine: a\n"), HasSubstr("problem is missing"));
  EXPECT_THAT(message(title + "engine: a\nproblme: b\n"),
              HasSubstr("line 3: unknown field 'problme'"));
  EXPECT_THAT(message(title + "seed: -1\n"), HasSubstr("line 2: '-1'"));
  EXPECT_THAT(message(title + "checks: row-sums\n"),
              HasSubstr("did you mean 'row-sum'"));
  EXPECT_THAT(message(title + "nonsense\n"), HasSubstr("line 2"));
}

TEST(SavedFailure, ThereIsOneForEachSmallestCase) {
  RunResult run = sample::failing_run();
  EXPECT_TRUE(failures_of(run, {}, "x").empty());  // All of them replays.
  for (ProblemResult& result : run.problems) result.number = 1;
  const std::size_t before = failures_of(run, {}, "x").size();
  EXPECT_EQ(before, 3u);  // Two violations, and an engine error.
  run.problems.push_back(run.problems[1]);
  run.problems.back().problem_line = "another that shrinks to the same";
  EXPECT_EQ(failures_of(run, {}, "x").size(), before);
}

TEST(SettingsDigest, IsOfWhatDecidesAndNotOfTheProblems) {
  Policy policy = default_policy();
  const std::string digest = settings_digest(policy);
  policy.problems.clear();
  policy.seed = 99;
  EXPECT_EQ(settings_digest(policy), digest);
  SettingsPatch patch;
  patch.severities["row-sum"] = Severity::kWarning;
  policy.patches.push_back(patch);
  EXPECT_NE(settings_digest(policy), digest);
}

TEST(ShellWords, SplitsAsAShellDoes) {
  const auto words = shell_words(
      "attnguard check  --problem 'a=1 b=\"2\"' \"x \\\" y\" it\\'s ''");
  ASSERT_TRUE(words.ok());
  EXPECT_THAT(words.value(), ElementsAre("attnguard", "check", "--problem",
                                         "a=1 b=\"2\"", "x \" y", "it's", ""));
  EXPECT_FALSE(shell_words("attnguard 'check").ok());
}

}  // namespace
}  // namespace attnguard
