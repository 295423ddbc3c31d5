// `attnguard check` on engines that fail: the command in this process with
// engines in others, and the command itself as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ci/cli.h"
#include "tests/ci/isolate/isolation_testing.h"
#include "tests/ci/run_words.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

Outcome check_lengths(const std::string& engine,
                      const std::vector<int>& lengths,
                      std::vector<const char*> more = {}) {
  std::vector<std::string> words = {"check", "--engine", engine};
  for (int length : lengths) {
    words.push_back("--problem");
    words.push_back("num_heads=2 head_dim=16 mask=causal_top_left seq_len=" +
                    std::to_string(length));
  }
  words.insert(words.end(), more.begin(), more.end());
  Surroundings surroundings;
  surroundings.worker = ATTNGUARD_FAULT_WORKER;
  return run_words(words, surroundings);
}

TEST(IsolatedCheck, CrashHangAndOverrunAreThreeFindingsAndTheRestIsReported) {
  const Outcome outcome = check_lengths(
      "fault:engine,20=crash,40=hang,60=read-past",
      {10, 20, 30, 40, 50, 60, 70}, {"--timeout", "2", "--format", "json"});
  EXPECT_EQ(outcome.code, kExitViolation) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const Json report = Json::parse(outcome.out);
  const Json& problems = report["runs"][0]["problems"];
  ASSERT_EQ(problems.size(), 7u);
  std::vector<std::string> verdicts;
  for (const Json& problem : problems) verdicts.push_back(problem["verdict"]);
  EXPECT_THAT(verdicts, testing::ElementsAre("pass", "engine_error", "pass",
                                             "engine_error", "pass",
                                             "violation", "pass"));
  EXPECT_THAT(problems[1].dump(), HasSubstr("died of signal 11"));
  EXPECT_THAT(problems[3].dump(), HasSubstr("did not finish within 2 s"));
  EXPECT_THAT(problems[5].dump(), HasSubstr("\"out_of_bounds\""));
  EXPECT_THAT(problems[5].dump(), HasSubstr("read past the end of the key"));
  EXPECT_THAT(children(), IsEmpty());
}

TEST(IsolatedCheck, ExitsThreeWhenOnlyEnginesFailed) {
  EXPECT_EQ(check_lengths("fault:engine,7=exit", {5, 7}).code,
            kExitEngineError);
  EXPECT_EQ(check_lengths("fault:engine,7=exit", {5, 20}).code, kExitPass);
}

TEST(IsolatedCheck, OpeningKeepsItsExitCodes) {
  EXPECT_EQ(check_lengths("nonsense", {5}).code, kExitUsage);
  EXPECT_EQ(check_lengths("fault:engine,open=missing", {5}).code, kExitUsage);
  const Outcome crash = check_lengths("fault:engine,open=crash", {5});
  EXPECT_EQ(crash.code, kExitEngineError);
  EXPECT_THAT(crash.err, HasSubstr("died of signal 11"));
}

TEST(IsolatedCheck, DiagnosesAndShrinksThroughTheProcess) {
  const Outcome outcome = check_lengths("fault:engine,12=write-past", {12});
  EXPECT_EQ(outcome.code, kExitViolation);
  EXPECT_THAT(outcome.out, HasSubstr("wrote past the end of the output"));
  EXPECT_THAT(outcome.out, HasSubstr("replay it with"));
}

TEST(IsolatedCheck, ThreadsReachTheProcess) {
  for (const char* count : {"1", "3"})
    EXPECT_THAT(
        check_lengths("fault:engine,5=threads", {5}, {"--threads", count}).out,
        HasSubstr(std::string("exception: ") + count + " threads"));
}

TEST(IsolatedCheck, RefusesTimesThatAreNone) {
  for (const char* time : {"0", "-1", "1.5", "soon", "99999999999"}) {
    const Outcome outcome =
        check_lengths("fault:engine", {5}, {"--timeout", time});
    EXPECT_EQ(outcome.code, kExitUsage) << time;
    EXPECT_THAT(outcome.err, HasSubstr("--timeout")) << time;
  }
  const Outcome both =
      check_lengths("fault:engine", {5}, {"--timeout", "5", "--no-isolate"});
  EXPECT_EQ(both.code, kExitUsage);
  EXPECT_THAT(both.err, HasSubstr("leave out --no-isolate"));
}

TEST(IsolatedCheck, WithoutIsolationEnginesAreThoseOfThisProgram) {
  const Outcome outcome = check_lengths("fault:engine", {5}, {"--no-isolate"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("unknown adapter 'fault'"));
  EXPECT_EQ(check_lengths("builtin:tiled", {5}, {"--no-isolate"}).code,
            kExitPass);
}

TEST(IsolatedCheck, KeepsTheEnginesOutputOutOfTheReport) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const Outcome outcome =
      check_lengths("fault:engine,5=print", {5}, {"--format", "json"});
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), IsEmpty());
  EXPECT_THAT(err, HasSubstr("the engine prints"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("the engine prints")));
  EXPECT_TRUE(Json::accept(outcome.out));
}

// The command as a process; its output goes nowhere.
pid_t start_command(std::vector<const char*> words) {
  words.insert(words.begin(), ATTNGUARD_COMMAND);
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (std::freopen("/dev/null", "w", stdout) != nullptr &&
      std::freopen("/dev/null", "w", stderr) != nullptr)
    execv(words[0], const_cast<char* const*>(words.data()));
  _exit(127);
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream stream("/proc/" + std::to_string(parent) + "/task/" +
                       std::to_string(parent) + "/children");
  std::vector<pid_t> found;
  for (pid_t pid = 0; stream >> pid;) found.push_back(pid);
  return found;
}

TEST(IsolatedCheck, NoProcessOutlivesTheCommandEvenWhenItIsKilled) {
  // Long enough to be caught in the middle.
  const pid_t command = start_command(
      {"check", "--engine", "builtin:reference", "--problem",
       "num_heads=8 seq_len=2048 head_dim=64 mask=causal_top_left"});
  ASSERT_GT(command, 0);
  std::vector<pid_t> workers;
  for (int tries = 0; tries < 1000 && workers.empty(); ++tries) {
    usleep(10000);
    workers = children_of(command);
  }
  ASSERT_EQ(workers.size(), 1u);
  usleep(100000);
  EXPECT_FALSE(is_gone(workers[0]));
  ASSERT_EQ(kill(command, SIGKILL), 0);
  EXPECT_EQ(waitpid(command, nullptr, 0), command);
  EXPECT_TRUE(soon_gone(workers[0]));
}

TEST(IsolatedCheck, TheWorkersCommandIsNotForPeople) {
  const pid_t command = start_command({"engine-worker", "builtin:tiled"});
  int status = 0;
  ASSERT_EQ(waitpid(command, &status, 0), command);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitUsage);
}

}  // namespace
}  // namespace attnguard
