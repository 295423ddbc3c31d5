// The JSON Schema says what the parser takes; resolved values and differences
// say what policies come to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "guard/pipeline.h"
#include "guard/policy/yaml_schema.h"
#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

Json schema() { return Json::parse(policy_json_schema(check_ids())); }

// A value for each key that the parser takes.
std::string sample_of(std::string_view key) {
  if (key == "version") return "";
  if (key == "extends") return "built-in";
  if (key == "seed") return "3";
  if (key == "coverage") return "full";
  if (key == "checks") return "{finite: warning}";
  if (key == "tolerances") return "{finite: exact}";
  if (key == "engines") return "{\"a*\": {coverage: full}}";
  if (key == "suppressions") return "[{check: finite, reason: x}]";
  if (key == "runtime") return "{sample: 1/10}";
  if (key.ends_with("problems")) return "[{seq_len: 4}]";
  return "";
}

TEST(PolicySchema, HasExactlyTheKeysThatTheParserTakes) {
  const Json properties = schema()["properties"];
  EXPECT_EQ(properties.size(), policy_keys().size());
  for (const auto& [key, property] : properties.items()) {
    EXPECT_FALSE(property["description"].get<std::string>().empty()) << key;
    std::string text = "version: 1\n";
    if (key != "version") text += key + ": " + sample_of(key) + "\n";
    const PolicyParse parsed = parse_policy(text, "policy.yaml", check_ids());
    EXPECT_TRUE(parsed.policy) << format_diagnostics(parsed.diagnostics);
  }
  EXPECT_EQ(schema()["additionalProperties"], false);
  EXPECT_EQ(schema()["required"], Json::array({"version"}));
}

TEST(PolicySchema, NamesChecksFieldsKindsAndWords) {
  const Json definitions = schema()["definitions"];
  for (std::string_view id : check_ids())
    EXPECT_TRUE(definitions["checks"]["properties"].contains(id)) << id;
  for (const ProblemField& field : all_problem_fields())
    EXPECT_TRUE(definitions["problem"]["properties"].contains(field.name));
  EXPECT_EQ(definitions["severity"]["enum"],
            Json::array({"error", "warning", "off"}));
  EXPECT_EQ(definitions["suppression"]["required"],
            Json::array({"check", "reason"}));
  EXPECT_EQ(definitions["suppression"]["properties"]["kind"]["enum"].size(),
            9u);
  EXPECT_TRUE(definitions["engine"]["properties"].contains("coverage"));
  EXPECT_FALSE(definitions["engine"]["properties"].contains("problems"));
}

TEST(PolicySchema, EveryReferenceIsDefined) {
  const Json whole = schema();
  const std::string text = whole.dump();
  const std::string lead = "\"#/definitions/";
  int references = 0;
  for (std::size_t at = 0; (at = text.find(lead, at)) != text.npos; ++at) {
    const std::size_t from = at + lead.size();
    const std::string name = text.substr(from, text.find('"', from) - from);
    EXPECT_TRUE(whole["definitions"].contains(name)) << name;
    ++references;
  }
  EXPECT_GT(references, 20);
}

Policy policy_of_text(std::string_view text) {
  PolicyParse parsed = parse_policy(text, "own.yaml", check_ids());
  EXPECT_TRUE(parsed.policy) << format_diagnostics(parsed.diagnostics);
  return parsed.policy.value_or(Policy{});
}

constexpr std::string_view kOwn =
    "version: 1\n"
    "coverage: full\n"
    "tolerances:\n"
    "  reference: {fp16: 2.0e-3}\n"
    "problems:\n"
    "  - {seq_len: [4, 5]}\n"
    "engines:\n"
    "  \"mine*\":\n"
    "    checks: {\"*\": warning, finite: off}\n";

TEST(ResolvedPolicy, SaysWhereEachValueComesFrom) {
  const std::string text =
      print_resolved(policy_of_text(kOwn), "mine,a", check_ids());
  EXPECT_THAT(text, HasSubstr("seed: 1                              # "
                              "built-in\n"));
  EXPECT_THAT(text, HasSubstr("coverage: full                       # "
                              "own.yaml:2\n"));
  EXPECT_THAT(text, HasSubstr("  finite: off                        # "
                              "own.yaml:9\n"));
  EXPECT_THAT(text, HasSubstr("  row-sum: warning                   # "
                              "own.yaml:9\n"));
  EXPECT_THAT(text, HasSubstr("    fp16: 0.002                      # "
                              "own.yaml:4\n"));
  EXPECT_THAT(text, HasSubstr("  # own.yaml:6: 2 problems\n"));
}

TEST(ResolvedPolicy, ParsesToWhatHoldsForTheEngine) {
  const Policy own = policy_of_text(kOwn);
  for (const char* engine : {"mine,a", "other"}) {
    const Policy again =
        policy_of_text(print_resolved(own, engine, check_ids()));
    EXPECT_EQ(
        diff_policies(policy_of_text(print_resolved(own, engine, check_ids())),
                      again, check_ids()),
        "");
    for (std::string_view id : check_ids()) {
      const std::string name(id);
      EXPECT_EQ(again.resolve("any").check(name).severity,
                own.resolve(engine).check(name).severity);
      EXPECT_EQ(again.resolve("any").check(name).tolerance(Dtype::kFp16),
                own.resolve(engine).check(name).tolerance(Dtype::kFp16));
    }
    EXPECT_EQ(problem_lines(again), problem_lines(own));
  }
}

TEST(ResolvedPolicy, WithoutAnEngineListsThePatterns) {
  const Policy own = policy_of_text(kOwn);
  const std::string text = print_resolved(own, "", check_ids());
  EXPECT_THAT(text, HasSubstr("engines:\n  \"mine*\":\n    checks:\n"));
  EXPECT_EQ(diff_policies(own, policy_of_text(text), check_ids()), "");
}

TEST(PolicyDiff, IsEmptyForTheSameEffect) {
  EXPECT_EQ(diff_policies(default_policy(),
                          policy_of_text(print_policy(default_policy())),
                          check_ids()),
            "");
}

TEST(PolicyDiff, NamesWhatDiffersInEffect) {
  const Policy before = policy_of_text(
      "version: 1\nproblems: [{seq_len: [4, 5]}]\nengines: {}\n");
  const Policy after = policy_of_text(
      "version: 1\nseed: 2\nchecks: {repeatable: warning}\n"
      "tolerances: {reference: {fp16: 0.002}, row-sum: exact}\n"
      "problems: [{seq_len: [5, 6]}]\n"
      "engines: {\"a*\": {checks: {finite: off}}}\n"
      "suppressions: [{check: lse, reason: \"x\"}]\n");
  EXPECT_EQ(diff_policies(before, after, check_ids()),
            "every engine\n"
            "  seed                              1 -> 2\n"
            "  checks.repeatable                 error -> warning\n"
            "  tolerances.row-sum                auto -> exact\n"
            "  tolerances.reference.fp16         auto -> 0.002\n"
            "engines \"a*\"\n"
            "  checks.finite                     error -> off\n"
            "problems: 1 removed, 1 added, 1 in both\n"
            "  - " +
                before.problems[0].problem.text() +
                "\n"
                "  + " +
                after.problems[1].problem.text() +
                "\n"
                "suppressions: 0 removed, 1 added, 0 in both\n"
                "  + check: \"lse\", reason: \"x\"\n");
}

TEST(PolicyDiff, IsTheReverseTheOtherWayRound) {
  const Policy own = policy_of_text(kOwn);
  const std::string there = diff_policies(default_policy(), own, check_ids());
  const std::string back = diff_policies(own, default_policy(), check_ids());
  EXPECT_THAT(there, HasSubstr("coverage                          edges -> "
                               "full"));
  EXPECT_THAT(back, HasSubstr("coverage                          full -> "
                              "edges"));
  EXPECT_THAT(there, HasSubstr("engines \"ggml:*\""));
  EXPECT_THAT(there, HasSubstr("- and 297 more"));
}

}  // namespace
}  // namespace attnguard
