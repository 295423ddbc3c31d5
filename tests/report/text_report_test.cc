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

TEST(TextReport, EndsWithTheVerdict) {
  const std::string text = plain_text(sample::passing_run());
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_EQ(last,
            "pass  1 problem: 1 passed; 4 engine calls, 3.00 ms in the "
            "engine, 1.00 ms in the guard (25.0 %)\n");
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
