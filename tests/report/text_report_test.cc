#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "guard/report/influence_map_text.h"
#include "guard/report/report.h"
#include "guard/report/safe_text.h"
#include "tests/report/sample_results.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string plain_text(const RunResult& run, bool color = false) {
  ReportOptions options;
  options.color = color;
  return find_report_format("text")->render({&run, 1}, options);
}

TEST(TextReport, SaysTheBugInWords) {
  const std::string text = plain_text(sample::failing_run());
  EXPECT_THAT(text, HasSubstr("The weights of these rows do not sum to 1."));
  EXPECT_THAT(text, HasSubstr("Rows 0 and 1 move when later tokens change."));
  EXPECT_THAT(text, HasSubstr("and 15 more"));
  EXPECT_THAT(text, HasSubstr("row 0 is moved by keys 1-4, and must not be"));
  EXPECT_THAT(text, HasSubstr("attnguard check --engine"));
}

TEST(TextReport, DoesNotCallTheMassOneWhereItIsNot) {
  RunResult run = sample::failing_run();
  for (Finding& finding : run.problems[1].checks[1].findings)
    finding.expected = 0.75;
  const std::string text = plain_text(run);
  EXPECT_THAT(text, Not(HasSubstr("do not sum to 1.")));
  EXPECT_THAT(text, HasSubstr("do not have the sum they should"));
}

TEST(TextReport, NeverPrintsTwoDifferentValuesAlike) {
  RunResult run = sample::failing_run();
  run.problems[1].checks[1].findings[0].observed = 1.0000001;
  EXPECT_THAT(plain_text(run), HasSubstr("1.0000001"));
}

TEST(TextReport, SaysNoPlaceTwice) {
  RunResult run = sample::failing_run();
  run.problems[1].checks[1].findings[0].message =
      "batch 0, head 1, query 0: weights sum to 0.3125";
  EXPECT_THAT(plain_text(run), HasSubstr("\n      weights sum to 0.3125\n"));
}

TEST(TextReport, ColorsChangeNothingElse) {
  const RunResult run = sample::failing_run();
  const std::string plain = plain_text(run);
  const std::string colored = plain_text(run, true);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(colored.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::regex_replace(colored, std::regex("\x1b\\[[0-9]+m"), ""),
            plain);
}

TEST(TextReport, LetsNoNameDriveTheTerminal) {
  const std::string text = plain_text(sample::hostile_run());
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x01'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("\\x1b[31m\\x01\\x7f"));
}

std::string final_line(const std::string& text) {
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

TEST(TextReport, EndsWithTheVerdict) {
  EXPECT_EQ(final_line(plain_text(sample::passing_run())),
            "pass  1 problem: 1 passed; 4 engine calls, 3.00 ms in the "
            "engine, 1.00 ms in the guard (25.0 %)\n");
}

// A pass does not look clean where something was found or is overdue.
TEST(TextReport, CountsWarningsAndExpiredSuppressionsInTheLastLine) {
  RunResult run = sample::passing_run();
  CheckResult warned = sample::check("repeatable", Verdict::kViolation);
  warned.warning_only = true;
  warned.num_findings = 3;
  run.problems[0].checks.push_back(warned);
  SuppressionUse old{.check = "row-sum",
                     .engine = "*",
                     .problem = "*",
                     .kind = "",
                     .reason = "ticket 42",
                     .expires = "2026-01-31",
                     .location = {"policy.yaml", 9, 5}};
  old.expired = true;
  run.suppressions = {old};
  const std::string text = plain_text(run);
  EXPECT_THAT(final_line(text),
              HasSubstr("1 problem: 1 passed, 3 warnings, 1 expired "
                        "suppression; 4 engine calls"));
  EXPECT_THAT(text, HasSubstr("expired suppressions, which fail a run that "
                              "reaches them: remove them, or give them a new "
                              "date\n  policy.yaml:9: row-sum, on 2026-01-31 "
                              "(ticket 42)\n"));

  // One that was reached is in the run's note, and several engines share it.
  run.suppressions[0].reached = true;
  const std::vector<RunResult> runs = {run, run};
  const std::string both = find_report_format("text")->render(runs, {});
  EXPECT_THAT(final_line(both),
              HasSubstr("2 problems: 2 passed, 6 warnings, 1 expired "
                        "suppression;"));
  EXPECT_THAT(both, Not(HasSubstr("which fail a run that reaches them")));

  // The line stays one where there is no problem.
  run.problems.clear();
  EXPECT_THAT(final_line(plain_text(run)),
              HasSubstr("0 problems: 1 expired suppression;"));
}

// Whether or not the run may leave it out, it is no problem that nothing
// applies to.
TEST(TextReport, CountsUncheckedProblemsAsSuch) {
  for (Verdict verdict : {Verdict::kInconclusive, Verdict::kNotApplicable}) {
    RunResult run = sample::passing_run();
    run.problems.push_back(sample::problem(64, "full", verdict));
    run.problems.back().unchecked = true;
    run.problems.push_back(sample::problem(8, "full", Verdict::kNotApplicable));
    EXPECT_THAT(final_line(plain_text(run)),
                HasSubstr("3 problems: 1 passed, 1 not applicable, 1 "
                          "unchecked;"));
  }
}

TEST(InfluenceMapText, CutsALargeMapAroundTheFirstWrongCell) {
  InfluenceMap map;
  map.first_column = 1000;
  map.cells.assign(100, std::string(100, '.'));
  map.cells[70][90] = 'X';
  const std::string text = draw_influence_map(map, Painter(false));
  EXPECT_THAT(text, HasSubstr(" X"));
  EXPECT_THAT(text, HasSubstr("row 70 is moved by key 1090"));
  EXPECT_THAT(text, HasSubstr("a part of 100 rows and 100 keys"));
  EXPECT_EQ(draw_influence_map({}, Painter(false)), "");
}

TEST(SafeText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(xml_text("\xc0\x80|\xf4\x90\x80\x80|\xe2\x82"),
            "\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
            "\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(xml_text("\xf0\x9f\x99\x82\t\n"), "\xf0\x9f\x99\x82\t\n");
  EXPECT_EQ(terminal_text("\xc2\x9b"), "\\x9b");
  EXPECT_EQ(text_width("\xc3\xa9t\xc3\xa9"), 3u);
}

}  // namespace
}  // namespace attnguard
