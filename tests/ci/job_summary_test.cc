// GitHub's job summary: when it is written, where, and how much of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/cli.h"
#include "ci/report_options.h"
#include "guard/check/check.h"
#include "tests/ci/run_words.h"
#include "tests/report/sample_results.h"
#include "tests/support/program.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Outcome check_with_summary(const char* format, const std::string& summary) {
  Surroundings surroundings;
  surroundings.job_summary = summary;
  return run_words({"check", "--engine", "builtin:wrong_axis", "--problem",
                    "seq_len=5 head_dim=16 mask=causal_top_left",
                    "--no-isolate", "--format", format},
                   surroundings);
}

TEST(JobSummary, IsAppendedByTheGithubFormatAlone) {
  const TestFolder folder;
  const std::string path = folder.write("summary.md", "# before\n");
  EXPECT_EQ(check_with_summary("json", path).code, kExitViolation);
  EXPECT_EQ(folder.read("summary.md"), "# before\n");

  const Outcome outcome = check_with_summary("github", path);
  EXPECT_EQ(outcome.code, kExitViolation) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("::error "));
  const std::string text = folder.read("summary.md");
  EXPECT_THAT(text, StartsWith("# before\n## attnguard: violation\n"));
  EXPECT_THAT(text, HasSubstr("| `row-sum` |"));
  EXPECT_THAT(text, HasSubstr("  query 0  # X X X X\n"));
  EXPECT_THAT(text, HasSubstr("behaves like: softmax-over-queries"));
  EXPECT_THAT(text, HasSubstr("attnguard check --engine builtin:wrong_axis"));
}

TEST(JobSummary, ThatCannotBeWrittenIsAnError) {
  const Outcome outcome =
      check_with_summary("github", "/nonexistent/summary.md");
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/summary.md"));
  EXPECT_THAT(outcome.err, HasSubstr("GITHUB_STEP_SUMMARY"));
}

TEST(JobSummary, EndsAtOneMebibyteAndSaysSo) {
  const TestFolder folder;
  const RunResult run = sample::failing_run();
  const std::string path =
      folder.write("summary.md", std::string((1 << 20) - 500, 'x') + "\n");
  ASSERT_TRUE(append_job_summary(path, {&run, 1}, {}).ok());
  std::string text = folder.read("summary.md");
  EXPECT_LE(text.size(), 1u << 20);
  EXPECT_THAT(text, testing::EndsWith("a job summary ends at 1 MiB.**\n"));
  const std::size_t size = text.size();
  ASSERT_TRUE(append_job_summary(path, {&run, 1}, {}).ok());
  EXPECT_LE(folder.read("summary.md").size(), 1u << 20);
  EXPECT_GE(folder.read("summary.md").size(), size);
}

TEST(ReportOptions, HaveThePageOfEveryCheckAndATime) {
  const ReportOptions options = report_options("a b");
  EXPECT_EQ(options.rules.size(), all_checks().size());
  EXPECT_FALSE(options.hostname.empty());
  EXPECT_THAT(options.timestamp,
              testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{"
                                    "2}:[0-9]{2}"));
}

}  // namespace
}  // namespace attnguard
