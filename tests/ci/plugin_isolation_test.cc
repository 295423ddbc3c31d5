// A plugin that crashes on one problem, hangs on another and reads past a
// tensor on a third: the command reports all three and everything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ci/cli.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/ci/run_words.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST(PluginIsolation, CrashHangAndOverrunAreThreeFindingsAndTheRestIsReported) {
  const std::string engine = "plugin:" + plugin_path("fatal");
  std::vector<std::string> words = {"check", "--engine",  engine, "--format",
                                    "json",  "--timeout", "3"};
  for (int length : {10, 20, 30, 40, 50, 60, 70}) {
    words.push_back("--problem");
    words.push_back(
        "num_heads=2 head_dim=16 mask=causal_bottom_right seq_len=" +
        std::to_string(length));
  }
  Surroundings surroundings;
  surroundings.worker = ATTNGUARD_COMMAND;
  const Outcome outcome = run_words(words, surroundings);
  EXPECT_EQ(outcome.code, kExitViolation) << outcome.err;
  const Json report = Json::parse(outcome.out);
  const Json& problems = report["runs"][0]["problems"];
  ASSERT_EQ(problems.size(), 7u);
  std::vector<std::string> verdicts;
  for (const Json& problem : problems) verdicts.push_back(problem["verdict"]);
  EXPECT_THAT(verdicts, testing::ElementsAre("pass", "engine_error", "pass",
                                             "engine_error", "pass",
                                             "violation", "pass"));
  EXPECT_THAT(problems[1].dump(), HasSubstr("died of signal 11"));
  EXPECT_THAT(problems[3].dump(), HasSubstr("did not finish within 3 s"));
  EXPECT_THAT(problems[5].dump(), HasSubstr("read past the end of the key"));
}

}  // namespace
}  // namespace attnguard
