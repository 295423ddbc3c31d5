#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "guard/report/report.h"
#include "tests/report/sample_results.h"
#include "tests/support/json_schema.h"

namespace attnguard {
namespace {

nlohmann::json parsed_report(const std::vector<RunResult>& results) {
  const ReportOptions options{.version = "1.2.3", .command_line = "a b"};
  return nlohmann::json::parse(
      find_report_format("json")->render(results, options), nullptr,
      /*allow_exceptions=*/false);
}

TEST(JsonReport, HoldsEveryProblemWithItsCosts) {
  const nlohmann::json report =
      parsed_report({sample::passing_run(), sample::failing_run()});
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(report["tool"]["version"], "1.2.3");
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["exit_code"], 1);
  ASSERT_EQ(report["runs"].size(), 2u);
  const nlohmann::json& run = report["runs"][1];
  EXPECT_EQ(run["engine"], "builtin:wrong_axis");
  EXPECT_EQ(run["seed"].get<std::uint64_t>(), 18446744073709551615ull);
  ASSERT_EQ(run["problems"].size(), 7u);
  const nlohmann::json& problem = run["problems"][1];
  EXPECT_EQ(problem["engine_calls"], 4);
  EXPECT_DOUBLE_EQ(problem["engine_seconds"], 0.003);
  EXPECT_EQ(problem["location"]["line"], 14);
  EXPECT_EQ(problem["check_verdicts"]["violation"], 3);
  EXPECT_EQ(problem["influence_map"]["cells"][0], "#XXXX");
  EXPECT_TRUE(run["problems"][0]["influence_map"].is_null());
  EXPECT_EQ(run["totals"]["problems"]["unsupported"], 1);
}

TEST(JsonReport, CountsUncheckedProblemsOnce) {
  RunResult run = sample::passing_run();
  run.problems.push_back(sample::problem(64, "full", Verdict::kNotApplicable));
  run.problems.back().unchecked = true;
  const nlohmann::json totals = parsed_report({run})["totals"];
  EXPECT_EQ(totals["num_problems"], 2);
  EXPECT_EQ(totals["unchecked"], 1);
  EXPECT_EQ(totals["problems"]["pass"], 1);
  EXPECT_EQ(totals["problems"]["not_applicable"], 0);
}

TEST(JsonReport, SpellsOutNumbersThatJsonDoesNotHave) {
  const nlohmann::json report = parsed_report({sample::failing_run()});
  const nlohmann::json& sums = report["runs"][0]["problems"][1]["checks"][1];
  EXPECT_EQ(sums["check"], "row-sum");
  EXPECT_EQ(sums["num_findings"], 20);
  EXPECT_EQ(sums["findings"][3]["observed"], "NaN");
  EXPECT_EQ(sums["findings"][4]["observed"], "-Infinity");
  EXPECT_EQ(sums["findings"][0]["observed"], 0.3125);
  EXPECT_TRUE(sums["findings"][0]["key"].is_null());
  EXPECT_EQ(sums["findings"][0]["query"], 0);
}

TEST(JsonReport, ReplacesInvalidUtf8AndKeepsTheRest) {
  const nlohmann::json report = parsed_report({sample::hostile_run()});
  ASSERT_TRUE(report.is_object());
  const std::string engine = report["runs"][0]["engine"];
  EXPECT_NE(engine.find("a\"b'c<d>&e]]>\x1b[31m\x01"), std::string::npos);
  EXPECT_NE(engine.find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_EQ(engine.find('\xff'), std::string::npos);
}

// The published schema; what a report of another version must not be.
TEST(JsonReport, IsValidByThePublishedSchema) {
  const std::string schema =
      ATTNGUARD_TEST_DATA "/../guard/report/attnguard-report.schema.json";
  ATTNGUARD_NEED_SCHEMA(schema);
  RunResult hostile = sample::hostile_run();
  for (ProblemResult& problem : hostile.problems)
    if (problem.map) problem.map->cells = {"#X", ".o"};
  for (const std::vector<RunResult>& results :
       std::vector<std::vector<RunResult>>{
           {},
           {sample::passing_run(), sample::failing_run(), sample::empty_run()},
           {hostile}})
    EXPECT_EQ(schema_errors(schema, parsed_report(results).dump()), "");

  const auto errors_with = [&](const char* pointer, nlohmann::json value) {
    nlohmann::json report = parsed_report({sample::failing_run()});
    report[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return schema_errors(schema, report.dump());
  };
  EXPECT_NE(errors_with("/schema_version", 2), "");
  EXPECT_NE(errors_with("/verdict", "passed"), "");
  EXPECT_NE(errors_with("/runs/0/problems/1/checks/1/findings/0/kind", "x"),
            "");
  EXPECT_NE(errors_with("/runs/0/problems/1/checks/1/findings/0/query", -1),
            "");
  EXPECT_NE(errors_with("/runs/0/totals/problems/pass", "1"), "");
  EXPECT_NE(errors_with("/runs/0/problems/1/influence_map/cells/0", "#?"), "");
  EXPECT_EQ(errors_with("/runs/0/added_later", 1), "");
}

}  // namespace
}  // namespace attnguard
