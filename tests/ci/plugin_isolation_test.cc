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

// In the plugin's process and in this one.
TEST(PluginIsolation, WhatThePluginSaysOfItsMemoryReachesTheReport) {
  Surroundings surroundings;
  surroundings.worker = ATTNGUARD_COMMAND;
  const auto problem_of_fault = [&](const std::string& fault,
                                    const std::string& where) {
    const std::string engine = "plugin:" + plugin_path("device") + ",fault=";
    std::vector<std::string> words = {"check",     "--engine", engine + fault,
                                      "--format",  "json",     "--problem",
                                      kTinyProblem};
    if (!where.empty()) words.push_back(where);
    const Outcome outcome = run_words(words, surroundings);
    SCOPED_TRACE(outcome.err);
    const Json report = Json::parse(outcome.out);
    return report["runs"][0]["problems"][0];
  };
  for (const char* where : {"", "--no-isolate"}) {
    SCOPED_TRACE(where);
    EXPECT_THAT(problem_of_fault("memory-ends", where).dump(),
                HasSubstr("no memory for the query tensor (640 bytes): "
                          "allocate() returned 'out of memory': cuMemAlloc: "
                          "out of memory, 3 MiB free"));
    const Json fails = problem_of_fault("memory-fails", where);
    EXPECT_EQ(fails["verdict"], "engine_error");
    EXPECT_THAT(fails.dump(), HasSubstr("allocate() returned 'failed': "
                                        "cuMemAlloc: device lost"));
    EXPECT_THAT(problem_of_fault("memory-nulls", where).dump(),
                HasSubstr("allocate() returned success and no memory"));
  }
}

}  // namespace
}  // namespace attnguard
