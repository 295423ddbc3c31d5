// Shards, limits, processes and replays, through the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ci/cli.h"
#include "guard/check/check.h"
#include "tests/ci/run_words.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPolicy = R"(version: 1
problems:
  - {seq_len: [5, 9, 17, 33], head_dim: 16, mask: [full, causal_top_left]}
  - {num_heads: 4, num_kv_heads: 2, seq_len: 65, head_dim: [16, 64], dtype: [fp32, bf16], mask: causal_bottom_right}
)";

// Of a run that was asked for a report in JSON.
struct JsonOutcome : Outcome {
  Json json() const { return Json::parse(out, nullptr, false); }
};

class RunTest : public testing::Test {
 protected:
  RunTest() {
    std::string name = testing::TempDir() + "attnguard-run-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::ofstream(file("p.yaml")) << kPolicy;
  }
  ~RunTest() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

  static JsonOutcome run(const std::vector<std::string>& words,
                         bool isolated = false) {
    Surroundings surroundings;
    if (isolated) surroundings.worker = ATTNGUARD_COMMAND;
    return {run_words(words, surroundings)};
  }

  JsonOutcome check(
      std::vector<std::string> more, bool isolated = false,
      const std::string& engine = "builtin:causal_off_by_one") const {
    std::vector<std::string> words = {"check", "--engine", engine};
    if (std::find(more.begin(), more.end(), "--replay") != more.end())
      words = {"check"};
    else if (std::find(more.begin(), more.end(), "--problem") == more.end())
      words.insert(words.end(), {"--policy", file("p.yaml")});
    words.insert(words.end(), more.begin(), more.end());
    return run(words, isolated);
  }

  std::string folder_;
};

// What does not depend on the clock or on how the run was cut.
Json comparable(Json report) {
  report.erase("tool");
  for (Json* totals : {&report["totals"]})
    for (const char* name : {"engine_seconds", "guard_seconds", "guard_share"})
      totals->erase(name);
  for (Json& run : report["runs"]) {
    run.erase("shard");
    run.erase("threads");
    run.erase("totals");
    for (Json& problem : run["problems"])
      for (const char* name : {"engine_seconds", "guard_seconds"})
        problem.erase(name);
  }
  return report;
}

TEST_F(RunTest, ShardsMergeToTheWholeReport) {
  const std::vector<std::string> engines = {"--engine", "builtin:tiled",
                                            "--format", "json"};
  const JsonOutcome whole = check(engines);
  ASSERT_EQ(whole.code, kExitViolation) << whole.err;
  std::vector<std::string> merge = {"merge", "--format", "json"};
  std::set<int> sizes;
  for (const char* part : {"2/3", "3/3", "1/3"}) {
    std::vector<std::string> words = engines;
    words.insert(words.end(), {"--shard", part});
    const JsonOutcome shard = check(words);
    sizes.insert(
        static_cast<int>(shard.json()["totals"]["num_problems"].get<int>()));
    merge.push_back(write(std::string(1, part[0]) + ".json", shard.out));
  }
  EXPECT_LE(*sizes.rbegin(), 12);
  const JsonOutcome merged = run(merge);
  EXPECT_EQ(merged.code, whole.code) << merged.err;
  Json a = comparable(merged.json()), b = comparable(whole.json());
  // Each shard has its first violations diagnosed, so that there are more.
  for (Json* report : {&a, &b})
    for (Json& run : (*report)["runs"])
      for (Json& problem : run["problems"]) problem.erase("diagnosis");
  EXPECT_EQ(a, b);
  const JsonOutcome text = run({"merge", merge[3], merge[4], merge[5]});
  EXPECT_THAT(text.out, AllOf(HasSubstr("12 problems"),
                              HasSubstr("when later tokens change")));
}

TEST_F(RunTest, MergeRefusesWhatIsNotTheWhole) {
  const auto shard = [&](const std::string& part, const std::string& name,
                         std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--shard", part, "--format", "json", "--no-map"});
    return write(name, check(more).out);
  };
  const std::string one = shard("1/2", "1.json"), two = shard("2/2", "2.json");
  EXPECT_EQ(run({"merge", one, two}).code, kExitViolation);
  const auto refused = [&](std::vector<std::string> files) {
    files.insert(files.begin(), "merge");
    const JsonOutcome outcome = run(files);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(refused({one}), HasSubstr("there is no report of: 2"));
  EXPECT_THAT(refused({one, one, two}),
              HasSubstr("shard 1 of 2 is there twice"));
  EXPECT_THAT(refused({one, shard("2/3", "3.json")}),
              HasSubstr("different numbers of shards"));
  EXPECT_THAT(refused({one, shard("2/2", "s.json", {"--seed", "9"})}),
              HasSubstr("different seeds: " + one + " says '1'"));
  EXPECT_THAT(refused({one, shard("2/2", "c.json", {"--check", "row-sum"})}),
              HasSubstr("different policies or checks"));
  Json changed = Json::parse(check({"--shard", "2/2", "--format", "json"}).out);
  changed["tool"]["version"] = "0.0.9";
  EXPECT_THAT(refused({one, write("v.json", changed.dump())}),
              HasSubstr("different versions"));
  changed["tool"]["version"] =
      Json::parse(std::ifstream(one))["tool"]["version"];
  changed["runs"][0]["problems"].erase(0);
  EXPECT_THAT(refused({one, write("m.json", changed.dump())}),
              HasSubstr("is missing"));
  EXPECT_THAT(refused({write("junk.json", "junk")}), HasSubstr("junk.json"));
  EXPECT_THAT(refused({file("none.json")}), HasSubstr("none.json"));
  EXPECT_THAT(refused({}), HasSubstr("no report given"));
}

TEST_F(RunTest, MergeFailsOnFindingsUnlessTold) {
  const std::string one =
      write("1.json", check({"--format", "json", "--no-map"}).out);
  EXPECT_EQ(run({"merge", one}).code, kExitViolation);
  EXPECT_EQ(run({"merge", one, "--fail-on", "never"}).code, kExitPass);
  EXPECT_EQ(run({"merge", one, "--fail-on", "nevr"}).code, kExitUsage);
}

TEST_F(RunTest, MergeRefusesPartsOfDifferentBaselines) {
  const std::string known = file("known.yaml");
  check({"--write-baseline", known, "--no-map"});
  const std::string one = write(
      "1.json", check({"--shard", "1/2", "--format", "json", "--no-map"}).out);
  const std::string two =
      write("2.json", check({"--shard", "2/2", "--format", "json", "--no-map",
                             "--baseline", known})
                          .out);
  const JsonOutcome merged = run({"merge", one, two});
  EXPECT_EQ(merged.code, kExitUsage);
  EXPECT_THAT(merged.err, HasSubstr("different policies or checks"));
}

TEST_F(RunTest, AllEnginesOfAShardGetTheSameProblems) {
  const Json report = check({"--engine", "builtin:tiled", "--shard", "1/3",
                             "--format", "json", "--no-map"})
                          .json();
  const Json &a = report["runs"][0]["problems"],
             &b = report["runs"][1]["problems"];
  ASSERT_EQ(a.size(), b.size());
  EXPECT_GT(a.size(), 1u);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(a[i]["number"], b[i]["number"]);
}

TEST_F(RunTest, WhatAKilledRunLeftDoesNotBlockTheReport) {
  const std::string left = "report.txt.part-" + std::to_string(::getpid());
  write(left, "half of a rep");
  const JsonOutcome outcome = check(
      {"--output", file("report.txt"), "--no-map"}, false, "builtin:tiled");
  EXPECT_EQ(outcome.code, kExitPass) << outcome.err;
  EXPECT_TRUE(fs::exists(file("report.txt")));
  EXPECT_FALSE(fs::exists(file(left)));
  // Two files of one run are no leftovers of each other.
  const JsonOutcome twice = check(
      {"--output", file("report.txt"), "--write-baseline", file("report.txt")});
  EXPECT_EQ(twice.code, kExitUsage);
}

TEST_F(RunTest, CostsOfAReportCutTheShards) {
  const std::string costs =
      write("costs.json", check({"--format", "json", "--no-map"}).out);
  std::vector<std::string> merge = {"merge"};
  for (const char* part : {"1/2", "2/2"})
    merge.push_back(write(std::string(1, part[0]) + ".json",
                          check({"--shard", part, "--costs", costs, "--no-map",
                                 "--format", "json"})
                              .out));
  EXPECT_EQ(run(merge).code, kExitViolation);
  const JsonOutcome wrong = check({"--costs", file("p.yaml")});
  EXPECT_EQ(wrong.code, kExitUsage);
  EXPECT_THAT(wrong.err, HasSubstr("--costs: "));
}

TEST_F(RunTest, AShardWithoutProblemsIsNotAPass) {
  const JsonOutcome outcome =
      check({"--problem", "seq_len=5 head_dim=16", "--shard", "2/2"}, false,
            "builtin:tiled");
  EXPECT_EQ(outcome.code, kExitInconclusive);
  EXPECT_THAT(outcome.out, HasSubstr("no problem falls to shard 2 of 2"));
}

TEST_F(RunTest, JobsFindTheSameInTheSameOrder) {
  const std::vector<std::string> words = {"--format", "json", "--engine",
                                          "builtin:tiled"};
  const JsonOutcome one = check(words, true);
  ASSERT_EQ(one.code, kExitViolation) << one.err;
  for (const char* jobs : {"2", "5"}) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"--jobs", jobs});
    const JsonOutcome several = check(more, true);
    EXPECT_EQ(several.code, one.code) << several.err;
    EXPECT_EQ(comparable(several.json()), comparable(one.json())) << jobs;
  }
}

TEST_F(RunTest, JobsNeedProcesses) {
  for (const char* jobs : {"2", "auto"})
    for (bool isolated : {false, true}) {
      const JsonOutcome both =
          check({"--jobs", jobs, "--no-isolate"}, isolated);
      EXPECT_EQ(both.code, kExitUsage);
      EXPECT_THAT(both.out, IsEmpty());
      EXPECT_THAT(both.err, HasSubstr("--jobs: "));
      EXPECT_THAT(both.err, HasSubstr("--no-isolate"));
      EXPECT_THAT(both.err, HasSubstr("leave out one of the two"));
    }
  EXPECT_EQ(check({"--jobs", "1", "--no-isolate", "--no-map"}).code,
            kExitViolation);
  EXPECT_EQ(check({"--jobs", "2"}).code, kExitUsage);  // No program here.
  for (const char* jobs : {"0", "-1", "many", "100000"})
    EXPECT_THAT(check({"--jobs", jobs}, true).err, HasSubstr("--jobs"));
}

TEST_F(RunTest, WhatTheTimeLimitLeavesIsNamedAndInconclusive) {
  // On one thread the second problem takes longer than the limit anywhere.
  const std::vector<std::string> words = {
      "--problem",    "seq_len=5 head_dim=16",
      "--problem",    "num_heads=4 seq_len=2048 head_dim=64",
      "--problem",    "seq_len=6 head_dim=16",
      "--time-limit", "5",
      "--threads",    "1"};
  for (bool isolated : {false, true})
    for (const char* jobs : {"1", "2"}) {
      if (!isolated && jobs[0] == '2') continue;
      std::vector<std::string> more = words;
      more.insert(more.end(), {"--jobs", jobs, "--format", "json"});
      const JsonOutcome outcome = check(more, isolated, "builtin:reference");
      EXPECT_EQ(outcome.code, kExitInconclusive) << outcome.err;
      const Json run = outcome.json()["runs"][0];
      EXPECT_EQ(run["problems"][0]["verdict"], "pass");
      EXPECT_EQ(run["problems"][1]["unchecked"], true);
      EXPECT_EQ(run["problems"][1]["note"],
                "not checked: the time limit of 5 s was over");
      EXPECT_THAT(run["note"].get<std::string>(), HasSubstr("of 3 problems"));
    }
}

TEST_F(RunTest, SoManyMayBeLeftUnchecked) {
  const std::vector<std::string> words = {
      "--problem",    "seq_len=5 head_dim=16",
      "--problem",    "batch=8 num_heads=64 seq_len=32768 head_dim=128",
      "--max-memory", "1G"};
  std::vector<std::string> more = words;
  const JsonOutcome strict = check(more, false, "builtin:tiled");
  EXPECT_EQ(strict.code, kExitInconclusive);
  EXPECT_THAT(strict.out, HasSubstr("--max-memory is 1.0 GiB"));
  EXPECT_THAT(strict.out, HasSubstr("2 problems: 1 passed, 1 unchecked; "));
  more.insert(more.end(), {"--most-unchecked", "50"});
  const JsonOutcome half = check(more, false, "builtin:tiled");
  EXPECT_EQ(half.code, kExitPass) << half.out;
  EXPECT_THAT(half.out, HasSubstr("1 of 2 problems were not checked"));
  EXPECT_THAT(half.out, HasSubstr("2 problems: 1 passed, 1 unchecked; "));
  more.back() = "49";
  EXPECT_EQ(check(more, false, "builtin:tiled").code, kExitInconclusive);
  more.back() = "101";
  EXPECT_EQ(check(more, false, "builtin:tiled").code, kExitUsage);
}

TEST_F(RunTest, SavedFailuresReplayAndComeFirst) {
  const std::string folder = file("failures");
  const JsonOutcome first = check({"--save-failures", folder});
  EXPECT_EQ(first.code, kExitViolation);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files.push_back(entry.path().string());
  ASSERT_FALSE(files.empty());
  for (const std::string& saved : files) {
    const JsonOutcome replay = check({"--replay", saved, "--format", "json"});
    EXPECT_EQ(replay.code, kExitViolation) << saved << replay.err;
    EXPECT_EQ(replay.json()["runs"][0]["problems"].size(), 1u);
    EXPECT_THAT(replay.err, IsEmpty());
  }
  const JsonOutcome again =
      check({"--save-failures", folder, "--format", "json"});
  const Json problems = again.json()["runs"][0]["problems"];
  EXPECT_EQ(problems.size(), 12 + files.size());
  EXPECT_EQ(problems[0]["number"], 0);
  EXPECT_EQ(problems[0]["verdict"], "violation");
  EXPECT_EQ(problems[files.size()]["number"], 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}),
            static_cast<std::ptrdiff_t>(files.size()));
  // Another engine has none of them, and a correct one passes them.
  const JsonOutcome tiled = check(
      {"--save-failures", folder, "--format", "json"}, false, "builtin:tiled");
  EXPECT_EQ(tiled.code, kExitPass);
  EXPECT_EQ(tiled.json()["runs"][0]["problems"].size(), 12u);
  EXPECT_EQ(
      run({"check", "--replay", files[0], "--engine", "builtin:tiled"}).code,
      kExitPass);
  // Checks that are off by now are not run again.
  std::string off = kPolicy;
  off += "checks: {";
  for (const std::string_view id : check_ids())
    off += std::string(id) + ": off, ";
  write("p.yaml", off + "}\n");
  const Json skipped =
      check({"--save-failures", folder, "--format", "json"}).json();
  EXPECT_THAT(skipped["runs"][0]["problems"][0]["note"].get<std::string>(),
              HasSubstr("saved failure, not replayed"));
  write("p.yaml", kPolicy);
  write("failures/bad.failure", "nothing\n");
  EXPECT_THAT(check({"--save-failures", folder}).err, HasSubstr("bad.failure"));
}

TEST_F(RunTest, ReplaysTheLineOfAReport) {
  const Json report = check({"--format", "json", "--seed", "11"}).json();
  int replayed = 0;
  for (const Json& problem : report["runs"][0]["problems"]) {
    if (problem["verdict"] != "violation" || replayed == 3) continue;
    ++replayed;
    const JsonOutcome again = check(
        {"--replay", problem["replay"].get<std::string>(), "--format", "json"});
    EXPECT_EQ(again.code, kExitViolation) << again.err;
    const Json run = again.json()["runs"][0];
    EXPECT_EQ(run["seed"], 11);
    EXPECT_EQ(run["problems"][0]["problem"], problem["smallest_failing"]);
    // The same findings, to the last digit, a second time.
    const JsonOutcome third = check(
        {"--replay", problem["replay"].get<std::string>(), "--format", "json"});
    EXPECT_EQ(comparable(third.json()), comparable(again.json()));
  }
  EXPECT_EQ(replayed, 3);
}

TEST_F(RunTest, ReplayRefusesWhatItCannotMean) {
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "check");
    const JsonOutcome outcome = run(words);
    EXPECT_EQ(outcome.code, kExitUsage);
    return outcome.err;
  };
  EXPECT_THAT(refused({"--replay", "/nonexistent"}),
              HasSubstr("neither a file nor a line"));
  EXPECT_THAT(refused({"--replay", file("p.yaml")}),
              HasSubstr("no saved failure"));
  EXPECT_THAT(refused({"--replay", "attnguard check --engin x"}),
              HasSubstr("did you mean '--engine'"));
  EXPECT_THAT(refused({"--replay", "attnguard check --engine 'x"}),
              HasSubstr("is not closed"));
  EXPECT_THAT(refused({"--replay", "attnguard check --engine builtin:tiled",
                       "--seed", "4"}),
              HasSubstr("--seed: what --replay says decides"));
}

TEST_F(RunTest, ShrinkTimeZeroShrinksNothing) {
  const std::vector<std::string> words = {
      "--problem", "num_heads=2 seq_len=33 head_dim=64 mask=causal_top_left",
      "--format", "json"};
  std::vector<std::string> none = words;
  none.insert(none.end(), {"--shrink-time", "0"});
  const Json kept = check(none).json()["runs"][0]["problems"][0];
  EXPECT_EQ(kept["smallest_failing"], kept["problem"]);
  const Json shrunk = check(words).json()["runs"][0]["problems"][0];
  EXPECT_NE(shrunk["smallest_failing"], shrunk["problem"]);
}

// The command as a process, with a signal in the middle.
struct Interrupted {
  int code = -1;
  Json report;
};

Interrupted interrupt(const std::string& report, int number,
                      std::vector<std::string> words) {
  words.insert(words.begin(),
               {ATTNGUARD_COMMAND, "check", "--engine", "builtin:reference",
                "--format", "json", "--output", report});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    execv(argv[0], argv.data());
    _exit(127);
  }
  sleep(5);
  Interrupted outcome;
  kill(pid, number);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  outcome.report = Json::parse(std::ifstream(report), nullptr, false);
  return outcome;
}

TEST_F(RunTest, SignalsEndTheRunWithAReport) {
  const std::vector<std::string> words = {
      "--problem", "seq_len=5 head_dim=16",
      "--problem", "num_heads=4 seq_len=2048 head_dim=64",
      "--threads", "1"};
  for (const char* jobs : {"1", "2"})
    for (int number : {SIGINT, SIGTERM}) {
      std::vector<std::string> more = words;
      more.insert(more.end(), {"--jobs", jobs});
      const Interrupted outcome = interrupt(file("report.json"), number, more);
      EXPECT_EQ(outcome.code, 128 + number) << jobs;
      ASSERT_FALSE(outcome.report.is_discarded());
      const Json& problems = outcome.report["runs"][0]["problems"];
      EXPECT_EQ(problems[0]["verdict"], "pass");
      EXPECT_EQ(problems[1]["unchecked"], true);
      EXPECT_THAT(problems[1]["note"].get<std::string>(),
                  HasSubstr(number == SIGINT ? "SIGINT" : "SIGTERM"));
    }
}

TEST_F(RunTest, AWorkersCommandIsNotForPeople) {
  const std::string command =
      std::string(ATTNGUARD_COMMAND) + " check-worker 1 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), kExitUsage);
}

}  // namespace
}  // namespace attnguard
