// A report that is read back is the same report.
#include "guard/report/read_json_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "guard/report/report.h"
#include "tests/report/sample_results.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

std::string rendered_as(const std::vector<RunResult>& runs,
                        const std::string& format = "json") {
  const ReportOptions options{.version = "1.2.3", .command_line = "a b"};
  return find_report_format(format)->render(runs, options);
}

std::vector<RunResult> all_samples() {
  RunResult part = sample::failing_run();
  part.policy_digest = "0123456789abcdef";
  part.shard = {2, 3, 7};
  for (std::size_t i = 0; i < part.problems.size(); ++i)
    part.problems[i].number = static_cast<std::int64_t>(i) + 1;
  part.problems[0].unchecked = true;
  return {part, sample::passing_run(), sample::empty_run()};
}

TEST(ReadJsonReport, GivesTheSameReportInEveryFormat) {
  const std::string text = rendered_as(all_samples());
  const Result<JsonReport> report = read_json_report(text);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report.value().version, "1.2.3");
  EXPECT_EQ(report.value().command_line, "a b");
  for (std::string_view format : report_format_names())
    EXPECT_EQ(rendered_as(report.value().runs, std::string(format)),
              rendered_as(all_samples(), std::string(format)))
        << format;
}

TEST(ReadJsonReport, HostileNamesStayAsTheReportHasThem) {
  const std::string text = rendered_as({sample::hostile_run()});
  const Result<JsonReport> report = read_json_report(text);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(rendered_as(report.value().runs), text);
}

TEST(ReadJsonReport, SaysWhatIsWrongAndWhere) {
  const auto message = [](const std::string& pointer,
                          const nlohmann::json& value) {
    nlohmann::json report = nlohmann::json::parse(rendered_as(all_samples()));
    report[nlohmann::json::json_pointer(pointer)] = value;
    return read_json_report(report.dump()).status().message();
  };
  EXPECT_THAT(message("/runs/0/problems/3/verdict", "passed"),
              HasSubstr("runs[0].problems[3].verdict: unknown 'passed'"));
  EXPECT_THAT(message("/runs/0/seed", -1), HasSubstr("runs[0].seed"));
  EXPECT_THAT(message("/runs/0/threads", 1e300), HasSubstr("runs[0].threads"));
  EXPECT_THAT(message("/runs/1/problems", 7), HasSubstr("is no list"));
  EXPECT_THAT(message("/runs/0/problems/1/checks/0/warning_only", "no"),
              HasSubstr("warning_only: is neither true nor false"));
  EXPECT_THAT(message("/schema_version", 2), HasSubstr("reads version 1"));
  EXPECT_THAT(message("/tool/name", "other"), HasSubstr("tool.name"));
  EXPECT_THAT(read_json_report("{}").status().message(),
              HasSubstr("schema_version: is missing"));
  EXPECT_THAT(read_json_report("[1, 2").status().message(),
              HasSubstr("no JSON"));
  EXPECT_FALSE(read_json_report("").ok());
  EXPECT_FALSE(read_json_report(std::string(100000, '[')).ok());
}

// Whatever is cut off or replaced ends in a message.
TEST(ReadJsonReport, NothingCrashes) {
  const std::string text = rendered_as(all_samples());
  for (std::size_t at = 0; at + 2 < text.size(); at += 37) {
    EXPECT_FALSE(read_json_report(text.substr(0, at)).ok());
    std::string changed = text;
    changed[at] = changed[at] == '0' ? 'x' : '0';
    (void)read_json_report(changed);
  }
}

}  // namespace
}  // namespace attnguard
