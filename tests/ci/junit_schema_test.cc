// `attnguard check --format junit`: what it writes of real runs is valid by
// Jenkins' schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "ci/cli.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/support/program.h"
#include "tests/support/xml_schema.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

constexpr const char* kTinyProblem =
    "num_heads=2 seq_len=5 head_dim=16 mask=causal_top_left";

// The report of a check of one tiny problem.
std::string report(int expected_code, const std::string& engine,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"attnguard", "check",     "--engine",
                                    engine,      "--problem", kTinyProblem,
                                    "--format",  "junit"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  EXPECT_EQ(run_command(static_cast<int>(argv.size()), argv.data(), out, err),
            expected_code)
      << engine << "\n"
      << err.str();
  return out.str();
}

TEST(JunitSchema, HoldsForReportsOfEveryOutcome) {
  const std::string schema = schema_path("jenkins-junit.xsd");
  ATTNGUARD_NEED_XML_SCHEMA(schema);
  const TestFolder folder;
  const std::string accepts = folder.write(
      "accepts.yaml",
      "version: 1\n"
      "suppressions: [{check: \"*\", reason: \"ticket <42> & others\"}]\n");
  const std::string expired = folder.write(
      "expired.yaml",
      "version: 1\n"
      "suppressions: [{check: row-sum, reason: old, expires: 2001-01-31}]\n");
  const std::string warns =
      folder.write("warns.yaml", "version: 1\nchecks: {row-sum: warning}\n");
  const std::string fails = "plugin:" + plugin_path("fixture") + ",fault=fails";

  // Each has what it is there for, so that none of them says nothing.
  const struct {
    const char* holds;
    std::string text;
  } reports[] = {
      {"failures=\"0\"", report(kExitPass, "builtin:tiled")},
      {"<failure type=\"violation\"",
       report(kExitViolation, "builtin:wrong_axis")},
      {"<system-out>warning: ",
       report(kExitViolation, "builtin:wrong_axis", {"--policy", warns})},
      {"<skipped>suppressed: ",
       report(kExitPass, "builtin:wrong_axis", {"--policy", accepts})},
      {"expired on 2001-01-31",
       report(kExitViolation, "builtin:tiled", {"--policy", expired})},
      {"<error type=\"engine_error\"", report(kExitEngineError, fails)},
      {"<error type=\"inconclusive\"",
       report(kExitInconclusive, "builtin:tiled", {"--max-memory", "1"})},
      // One problem runs, and the plugin does not take the other.
      {"<skipped>",
       report(kExitPass, "plugin:" + plugin_path("template"),
              {"--problem", std::string(kTinyProblem) + " dtype=fp64"})},
      {"<testsuite name=\"builtin:wrong_axis\"",
       report(kExitViolation, "builtin:tiled",
              {"--engine", "builtin:wrong_axis"})},
  };
  for (const auto& [holds, text] : reports) {
    EXPECT_THAT(text, HasSubstr(holds));
    EXPECT_EQ(xml_schema_errors(schema, text), "") << text;
  }
}

}  // namespace
}  // namespace attnguard
