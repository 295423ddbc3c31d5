// GitHub's workflow commands: what is annotated where, how it is escaped, and
// how much of it there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "guard/report/report.h"
#include "guard/report/safe_text.h"
#include "tests/report/sample_results.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> github_lines(const std::vector<RunResult>& results) {
  std::vector<std::string> lines;
  std::istringstream stream(find_report_format("github")->render(results, {}));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::ptrdiff_t count(const std::vector<std::string>& lines,
                     std::string_view start) {
  return std::ranges::count_if(
      lines, [&](const std::string& line) { return line.starts_with(start); });
}

TEST(GithubReport, AnnotatesThePolicysLineWithErrorsBeforeWarnings) {
  const std::vector<std::string> lines = github_lines({sample::failing_run()});
  EXPECT_THAT(lines[0], StartsWith("::error file=policy.yaml,line=14,col=5,"
                                   "title=attnguard engine-error::"));
  EXPECT_THAT(lines[1], StartsWith("::error file=policy.yaml,line=14,col=5,"
                                   "title=attnguard row-sum::"
                                   "builtin:wrong_axis: 20 findings of kind "
                                   "mass, the first: "));
  EXPECT_THAT(lines[1], HasSubstr("%0Abehaves like: softmax-over-queries"));
  EXPECT_THAT(lines[1], HasSubstr("%0Areplay: attnguard check --engine"));
  EXPECT_EQ(count(lines, "::warning "), 2);  // inconclusive, repeatable
  EXPECT_EQ(lines.back(), "attnguard: violation");
}

TEST(GithubReport, CountsProblemsOfOnePlaceInOneAnnotation) {
  RunResult run = sample::failing_run();
  run.problems = {sample::wrong_axis(), sample::wrong_axis(),
                  sample::wrong_axis()};
  const std::vector<std::string> lines = github_lines({run});
  EXPECT_EQ(count(lines, "::error "), 2);  // row-sum, future-influence
  EXPECT_THAT(lines[0], HasSubstr("3 problems of this place; in one of them"));
  EXPECT_EQ(count(lines, "::notice "), 0);
}

TEST(GithubReport, WritesTheWorstTenAndCountsTheRest) {
  RunResult run = sample::failing_run();
  run.problems.clear();
  for (int line = 1; line <= 30; ++line) {
    run.problems.push_back(sample::wrong_axis());
    run.problems.back().location.line = line;
  }
  run.problems.back().checks[1].num_findings = 1000;
  const std::vector<std::string> lines = github_lines({run});
  EXPECT_EQ(count(lines, "::error "), 10);
  EXPECT_THAT(lines[0], HasSubstr("line=30,"));
  EXPECT_THAT(lines[0], HasSubstr("1000 findings"));
  EXPECT_EQ(count(lines, "::warning "), 0);
  // 30 of each of three checks are 90; ten are told.
  EXPECT_THAT(lines[10], StartsWith("::notice title=attnguard::and 80 more "
                                    "failures "));
}

TEST(GithubReport, NamesNoFileWhereThereIsNone) {
  RunResult run = sample::failing_run();
  for (ProblemResult& problem : run.problems) problem.location = {};
  run.problems[1].location = {"built-in", 3, 1};
  for (const std::string& line : github_lines({run}))
    EXPECT_THAT(line, Not(HasSubstr("file=")));
}

TEST(GithubReport, OfAPassIsNoAnnotation) {
  const std::vector<std::string> lines = github_lines({sample::passing_run()});
  EXPECT_EQ(count(lines, "::"), 0);
  EXPECT_EQ(lines.back(), "attnguard: pass");
}

TEST(GithubReport, SaysThatNothingWasChecked) {
  const std::vector<std::string> lines = github_lines({sample::empty_run()});
  EXPECT_EQ(lines[0],
            "::warning title=attnguard inconclusive::ggml:flash: the policy "
            "asks for no problem");
}

TEST(SafeText, EscapesWhatCommandsSeparateAt) {
  EXPECT_EQ(github_message("a%b\nc:d,e\r"), "a%25b%0Ac:d,e\\x0d");
  EXPECT_EQ(github_property("a%b\nc:d,e"), "a%25b%0Ac%3Ad%2Ce");
}

TEST(SafeText, MakesUrisOfPaths) {
  EXPECT_EQ(path_uri("ci/p q.yaml"), "ci/p%20q.yaml");
  EXPECT_EQ(path_uri("/a/\xc3\xa9#?.yaml"), "file:///a/%C3%A9%23%3F.yaml");
  EXPECT_EQ(path_uri("c:d"), "c%3Ad");
}

TEST(SafeText, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("a\xe2\x82\xac"
                      "b",
                      3),
            "a...");
}

// Every row of a table has a cell for each column of its head.
TEST(MarkdownReport, TablesHaveACellForEachColumn) {
  RunResult run = sample::failing_run();
  CheckResult& sums = run.problems[1].checks[1];
  sums.num_suppressed = sums.num_findings;
  run.suppressions = {{.check = "row-sum",
                       .engine = "*",
                       .problem = "*",
                       .reason = "known",
                       .expires = "2030-01-01",
                       .num_findings = 20}};
  const std::string text =
      find_report_format("markdown")->render(std::vector{run}, {});
  EXPECT_THAT(text, HasSubstr("| suppressed |"));
  std::istringstream stream(text);
  std::ptrdiff_t columns = 0, rows = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::ptrdiff_t bars = std::ranges::count(line, '|');
    if (!line.starts_with("|")) {
      columns = 0;
    } else if (columns == 0) {
      columns = bars;
    } else {
      EXPECT_EQ(bars, columns) << line;
      ++rows;
    }
  }
  EXPECT_GE(rows, 6);
}

TEST(SafeText, KeepsALineOne) {
  EXPECT_EQ(terminal_line("a\r\n::error::b"), "a\\x0d\\x0a::error::b");
  EXPECT_EQ(terminal_text("a\nb"), "a\nb");
}

TEST(SafeText, KeepsCodeSpansClosed) {
  EXPECT_EQ(markdown_code("a"), "`a`");
  EXPECT_EQ(markdown_code("a``b"), "```a``b```");
  EXPECT_EQ(markdown_code("`"), "`` ` ``");
  EXPECT_EQ(markdown_code("a|b\nc"), "`a\\|b c`");
}

}  // namespace
}  // namespace attnguard
