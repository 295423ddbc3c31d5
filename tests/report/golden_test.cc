// Every format of the table against its golden file, tests/report/golden.
// ATTNGUARD_ACCEPT=1 in the environment rewrites the files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "guard/report/report.h"
#include "tests/report/sample_results.h"
#include "tests/support/text_file.h"

namespace attnguard {
namespace {

std::string golden_path(std::string_view format) {
  return std::string(ATTNGUARD_TEST_DATA "/report/golden/") +
         std::string(format) + ".txt";
}

class ReportGolden : public testing::TestWithParam<std::string_view> {};

TEST_P(ReportGolden, RendersTheSampleResultsAsAccepted) {
  const std::vector<RunResult> results = {
      sample::passing_run(), sample::failing_run(), sample::empty_run()};
  ReportOptions options;
  options.version = "0.0.0";  // Not the project's, which changes.
  options.command_line = "attnguard check --engine builtin:tiled ...";
  const std::string text =
      find_report_format(GetParam())->render(results, options);
  const std::string path = golden_path(GetParam());
  if (std::getenv("ATTNGUARD_ACCEPT") != nullptr)
    std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, read_file(path))
      << "If the new text is right, run again with ATTNGUARD_ACCEPT=1.";
}

INSTANTIATE_TEST_SUITE_P(
    EveryFormat, ReportGolden, testing::ValuesIn(report_format_names()),
    [](const testing::TestParamInfo<std::string_view>& tested) {
      return std::string(tested.param);
    });

TEST(ReportTable, NamesAreUniqueAndFound) {
  for (const ReportFormat* format : all_report_formats()) {
    EXPECT_EQ(find_report_format(format->name), format);
    EXPECT_FALSE(format->summary.empty());
  }
  EXPECT_EQ(find_report_format("pdf"), nullptr);
  EXPECT_EQ(report_format_names().size(), all_report_formats().size());
}

TEST(ReportTable, SurvivesNoResultsAtAll) {
  for (const ReportFormat* format : all_report_formats())
    EXPECT_FALSE(format->render({}, {}).empty()) << format->name;
}

TEST(CombineRuns, TheWorstVerdictWins) {
  std::vector<RunResult> runs(2);
  const auto combined = [&](Verdict first, Verdict second) {
    runs[0].verdict = first;
    runs[1].verdict = second;
    return combine_runs(runs);
  };
  using enum Verdict;
  EXPECT_EQ(combined(kPass, kPass), kPass);
  EXPECT_EQ(combined(kPass, kInconclusive), kInconclusive);
  EXPECT_EQ(combined(kPass, kUnsupported), kInconclusive);
  EXPECT_EQ(combined(kEngineError, kInconclusive), kEngineError);
  EXPECT_EQ(combined(kEngineError, kViolation), kViolation);
  EXPECT_EQ(combine_runs({}), kInconclusive);
}

}  // namespace
}  // namespace attnguard
