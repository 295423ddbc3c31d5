// SARIF: what GitHub's code scanning asks for, field by field, and the official
// schema where it is on the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "guard/check/check.h"
#include "guard/report/report.h"
#include "tests/report/sample_results.h"
#include "tests/support/json_schema.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string sarif_text(const std::vector<RunResult>& results) {
  std::vector<RuleText> rules;
  for (const CheckInfo* check : all_checks())
    rules.push_back({check->id, check->summary, check->explanation});
  const ReportOptions options{
      .version = "1.2.3", .command_line = "attnguard check", .rules = rules};
  return find_report_format("sarif")->render(results, options);
}

Json sarif_run(const std::vector<RunResult>& results) {
  const Json report = Json::parse(sarif_text(results), nullptr, false);
  EXPECT_EQ(report["version"], "2.1.0");
  EXPECT_EQ(report["runs"].size(), 1u);
  return report["runs"][0];
}

const Json& rules_of(const Json& run) { return run["tool"]["driver"]["rules"]; }

TEST(SarifReport, HasWhatCodeScanningAsksForOfEveryRule) {
  const Json run = sarif_run({sample::failing_run()});
  EXPECT_EQ(run["tool"]["driver"]["name"], "attnguard");
  EXPECT_EQ(run["tool"]["driver"]["semanticVersion"], "1.2.3");
  std::set<std::string> ids;
  for (const Json& rule : rules_of(run)) {
    EXPECT_TRUE(ids.insert(rule["id"]).second) << rule["id"];
    EXPECT_FALSE(rule["name"].get<std::string>().empty());
    for (const char* field : {"shortDescription", "fullDescription", "help"}) {
      const std::string text = rule[field]["text"];
      EXPECT_FALSE(text.empty()) << rule["id"] << " " << field;
      // GitHub shows 1024 characters of a description.
      if (field != std::string_view("help")) {
        EXPECT_LE(text.size(), 1024u) << rule["id"] << " " << field;
      }
    }
    EXPECT_FALSE(rule["help"]["markdown"].get<std::string>().empty());
    EXPECT_LE(rule["properties"]["tags"].size(), 10u);
    EXPECT_FALSE(rule.contains("helpUri"));  // There is no such page.
  }
  for (const CheckInfo* check : all_checks())
    EXPECT_TRUE(ids.contains(std::string(check->id))) << check->id;
  EXPECT_TRUE(ids.contains("engine-error"));
  EXPECT_TRUE(ids.contains("padding") == false);  // It failed nowhere.
}

TEST(SarifReport, MakesMarkdownOfTheExplainPages) {
  const Json run = sarif_run({sample::failing_run()});
  for (const Json& rule : rules_of(run)) {
    if (rule["id"] != "row-sum") continue;
    const std::string markdown = rule["help"]["markdown"];
    EXPECT_THAT(markdown, testing::StartsWith("**What it sees**\n\n"));
    // The picture keeps its columns as a code block.
    EXPECT_THAT(markdown, HasSubstr("\n\n      softmax over keys (right)"));
    EXPECT_THAT(rule["fullDescription"]["text"],
                testing::StartsWith("One column of V is 1, so that output"));
  }
}

TEST(SarifReport, LocatesResultsAtThePolicysLine) {
  const Json run = sarif_run({sample::failing_run()});
  ASSERT_EQ(run["results"].size(), 10u);
  for (const Json& result : run["results"]) {
    const Json& rule = rules_of(run).at(result["ruleIndex"].get<std::size_t>());
    EXPECT_EQ(result["ruleId"], rule["id"]);
    ASSERT_EQ(result["locations"].size(), 1u);
    const Json& place = result["locations"][0]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"]["uri"], "policy.yaml");
    EXPECT_EQ(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    EXPECT_EQ(place["region"]["startLine"], 14);
    EXPECT_EQ(place["region"]["startColumn"], 5);
    EXPECT_FALSE(result["message"]["text"].get<std::string>().empty());
  }
  const Json& first = run["results"][0];
  EXPECT_EQ(first["ruleId"], "engine-error");
  EXPECT_FALSE(run.contains("artifacts"));
}

TEST(SarifReport, MakesWarningsOfChecksThatOnlyWarn) {
  const Json run = sarif_run({sample::failing_run()});
  std::map<std::string, std::string> levels;
  for (const Json& result : run["results"])
    levels[result["ruleId"]] = result["level"];
  EXPECT_EQ(levels["row-sum"], "error");
  EXPECT_EQ(levels["engine-error"], "error");
  EXPECT_EQ(levels["repeatable"], "warning");
  EXPECT_EQ(levels["inconclusive"], "warning");
}

TEST(SarifReport, HoldsTheProblemsThatNoFileAsksFor) {
  RunResult run = sample::failing_run();
  run.problems[1].location = {};
  run.problems[2].location = {"built-in", 40, 5};
  const Json report = sarif_run({run});
  ASSERT_EQ(report["artifacts"].size(), 1u);
  const std::string text = report["artifacts"][0]["contents"]["text"];
  const std::string expected[] = {run.problems[1].problem_line,
                                  run.problems[2].problem_line};
  EXPECT_EQ(text, expected[0] + "\n" + expected[1] + "\n");
  int checked = 0;
  for (const Json& result : report["results"]) {
    const Json& place = result["locations"][0]["physicalLocation"];
    if (place["artifactLocation"]["uri"] != "attnguard-problems.txt") continue;
    ++checked;
    const auto line = place["region"]["startLine"].get<std::size_t>();
    ASSERT_TRUE(line == 1 || line == 2);
    EXPECT_EQ(result["properties"]["problem"], expected[line - 1]);
  }
  EXPECT_EQ(checked, 8);
}

std::set<std::string> fingerprints(const RunResult& run) {
  std::set<std::string> all;
  const Json report = sarif_run({run});
  for (const Json& result : report["results"])
    all.insert(result["partialFingerprints"]["primaryLocationLineHash"]);
  EXPECT_EQ(all.size(), report["results"].size()) << "two are the same";
  return all;
}

TEST(SarifReport, KeepsFingerprintsWhenOnlyNumbersChange) {
  const RunResult run = sample::failing_run();
  RunResult later = run;
  later.seed = 99;
  std::ranges::reverse(later.problems);
  for (ProblemResult& problem : later.problems) {
    problem.location = {"policy.yaml", 99, 1};
    problem.replay += " --seed 99";
    for (CheckResult& check : problem.checks) {
      check.num_findings += 7;
      for (Finding& finding : check.findings) {
        finding.observed += 0.5;
        finding.query += 1;
        finding.message += " 17";
      }
    }
  }
  EXPECT_EQ(fingerprints(run), fingerprints(later));
}

TEST(SarifReport, TellsEnginesProblemsAndKindsApart) {
  const RunResult run = sample::failing_run();
  RunResult other = run;
  other.engine = "builtin:other";
  std::set<std::string> both = fingerprints(run);
  both.merge(fingerprints(other));
  EXPECT_EQ(both.size(), 2 * fingerprints(run).size());
}

TEST(SarifReport, LeavesOutWhatCodeScanningRefusesAndCountsIt) {
  RunResult run = sample::failing_run();
  const ProblemResult one = sample::wrong_axis();
  run.problems.clear();
  for (int i = 0; i < 9000; ++i) {
    run.problems.push_back(one);
    run.problems.back().problem_line += " " + std::to_string(i);
  }
  const std::string text = sarif_text({run});
  const Json report = Json::parse(text)["runs"][0];
  const auto kept = report["results"].size();
  const auto left_out =
      report["properties"]["resultsLeftOut"].get<std::size_t>();
  EXPECT_EQ(kept + left_out, 27000u);
  EXPECT_LE(kept, 25000u);
  EXPECT_GT(kept, 4000u);
  EXPECT_LT(text.size(), 20'000'000u);
  EXPECT_THAT(
      report["invocations"][0]["toolExecutionNotifications"][0]["message"]
            ["text"],
      testing::StartsWith(std::to_string(left_out) + " results left out"));
  // The worst are kept.
  for (const Json& result : report["results"])
    EXPECT_EQ(result["level"], "error");
}

TEST(SarifReport, SaysHowTheRunEnded) {
  const Json run = sarif_run(
      {sample::passing_run(), sample::failing_run(), sample::empty_run()});
  EXPECT_EQ(run["invocations"][0]["exitCode"], 1);
  EXPECT_EQ(run["invocations"][0]["executionSuccessful"], true);
  EXPECT_EQ(run["invocations"][0]["commandLine"], "attnguard check");
  EXPECT_EQ(run["invocations"][0]["toolExecutionNotifications"].size(), 3u);
}

TEST(SarifReport, EscapesLinksInMessages) {
  RunResult run = sample::failing_run();
  run.problems[1].checks[1].findings[0].message = "see [this](http://x)";
  bool seen = false;
  const Json report = sarif_run({run});
  for (const Json& result : report["results"]) {
    const std::string text = result["message"]["text"];
    EXPECT_EQ(text.find("[this]("), std::string::npos);
    seen |= text.find("\\[this\\](http://x)") != std::string::npos;
  }
  EXPECT_TRUE(seen);
}

TEST(SarifReport, IsValidByTheOfficialSchema) {
  const std::string schema = schema_path("sarif-2.1.0.json");
  ATTNGUARD_NEED_SCHEMA(schema);
  for (const std::vector<RunResult>& results :
       std::vector<std::vector<RunResult>>{
           {},
           {sample::passing_run(), sample::failing_run(), sample::empty_run()},
           {sample::hostile_run()}})
    EXPECT_EQ(schema_errors(schema, sarif_text(results)), "");
  // The positive control: a document that is not valid is not.
  EXPECT_NE(schema_errors(schema, R"({"version": "2.1.0", "runs": [{}]})"), "");
}

}  // namespace
}  // namespace attnguard
