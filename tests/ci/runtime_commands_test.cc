// `attnguard replay` and `attnguard runtime ...` as users run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "ci/cli.h"
#include "guard/runtime/dump_writer.h"
#include "guard/runtime/metrics.h"
#include "tests/ci/run_words.h"
#include "tests/runtime/live_tensors.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// A folder with one dump of the tensors.
class ReplayCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "attnguard-replay-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string dump(LiveTensors& tensors, std::int64_t query) {
    const TestViolation violation(tensors, 0, 0, query, kActionDump);
    {
      DumpWriter({.folder = folder_}, "my engine", {})
          .take(violation.violation);
    }
    for (const auto& entry : fs::directory_iterator(folder_))
      return entry.path().string();
    ADD_FAILURE() << "no file";
    return {};
  }

  std::string folder_;
};

TEST_F(ReplayCommand, ConfirmsAViolation) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  tensors.set_output(0, 0, 3, 9);
  const std::string file = dump(tensors, 3);
  const Outcome output = run_words({"replay", file});
  EXPECT_EQ(output.code, kExitViolation) << output.err;
  for (const char* part :
       {"engine    my engine\n", "layer     blk.7.attn, call 17\n",
        "kept      the whole call\n",
        "recorded  recompute (error), 1 finding\n",
        "judged again: 6 of 6 rows\n", "the recorded finding is confirmed\n",
        "recompute: batch 0, head 0, query 3: output channel 0 is 9, fp64 "
        "attention gives ",
        "\nviolation\n"})
    EXPECT_THAT(output.out, HasSubstr(part));
}

TEST_F(ReplayCommand, DoesNotRepeatWhatIsNotSo) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  const std::string file = dump(tensors, 3);
  const Outcome output = run_words({"replay", file});
  EXPECT_EQ(output.code, kExitPass);
  EXPECT_THAT(output.out, HasSubstr("the recorded finding is not among them"));
}

TEST_F(ReplayCommand, RunsARightEngineOnTheSameInputs) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  tensors.set_output(0, 0, 3, 9);
  const std::string file = dump(tensors, 3);
  const Outcome output =
      run_words({"replay", file, "--engine", "builtin:tiled"});
  EXPECT_EQ(output.code, kExitPass);
  EXPECT_THAT(output.out,
              HasSubstr("builtin:tiled on the same inputs: 6 of 6"));
}

TEST_F(ReplayCommand, ShrinksAWrongEngine) {
  LiveTensors tensors(
      "batch=2 num_heads=2 seq_len=12 head_dim=16 mask=causal_bottom_right");
  const std::string file = dump(tensors, 3);
  const Outcome output =
      run_words({"replay", file, "--engine", "builtin:wrong_axis"});
  EXPECT_EQ(output.code, kExitViolation);
  EXPECT_THAT(output.out, HasSubstr("smallest failing case"));
  EXPECT_THAT(output.out, HasSubstr("batch=1 num_heads=1 "));
  EXPECT_THAT(output.out,
              HasSubstr("attnguard check --engine builtin:wrong_axis "
                        "--problem 'batch=1"));
}

TEST_F(ReplayCommand, EndsWithTheEnginesErrors) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  const std::string file = dump(tensors, 3);
  EXPECT_EQ(run_words({"replay", file, "--engine", "builtin:tield"}).code,
            kExitUsage);
}

// What a hook reported: with the call's tensors, or without any.
class ReplayOfAReport : public ReplayCommand {
 protected:
  std::string report(LiveTensors& tensors, bool with_call) {
    TestViolation violation(tensors, 0, 0, 3, kActionDump);
    violation.findings[0].message = "cell 4 is stale";
    violation.violation.check = LiveCheck::kEngine;
    violation.violation.engine_check = "cache-cell";
    violation.violation.engine_text = "graph 3\nrow\x1b[1m 0";
    if (!with_call) violation.violation.call = nullptr;
    {
      DumpWriter({.folder = folder_}, "my engine", {})
          .take(violation.violation);
    }
    for (const auto& entry : fs::directory_iterator(folder_))
      return entry.path().string();
    ADD_FAILURE() << "no file";
    return {};
  }
};

TEST_F(ReplayOfAReport, WithoutTensorsIsInconclusive) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  const std::string file = report(tensors, false);
  const Outcome output = run_words({"replay", file});
  EXPECT_EQ(output.code, kExitInconclusive) << output.err;
  for (const char* part :
       {"layer     blk.7.attn, call 17\n",
        "kept      what was reported; the file holds no tensors\n",
        "recorded  engine: cache-cell (error), 1 finding\n",
        "  cell 4 is stale\n  | graph 3\n  | row\\x1b[1m 0\n",
        "no tensors: there is nothing to judge again\n", "\ninconclusive\n"})
    EXPECT_THAT(output.out, HasSubstr(part));
  EXPECT_THAT(output.out, Not(HasSubstr("\nproblem")));
  const Outcome engine =
      run_words({"replay", file, "--engine", "builtin:tiled"});
  EXPECT_EQ(engine.code, kExitInconclusive);
  EXPECT_THAT(engine.out, HasSubstr("nothing to run an engine on"));
}

TEST_F(ReplayOfAReport, ARightCallSaysNothingOfTheEnginesState) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  const std::string file = report(tensors, true);
  const Outcome output = run_words({"replay", file});
  EXPECT_EQ(output.code, kExitInconclusive) << output.err;
  EXPECT_THAT(output.out, HasSubstr("judged again: 6 of 6 rows\n"));
  EXPECT_THAT(output.out, HasSubstr("it cannot be judged again\n"));
}

TEST_F(ReplayOfAReport, AWrongCallIsAViolation) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  tensors.set_output(0, 0, 3, 9);
  const std::string file = report(tensors, true);
  EXPECT_EQ(run_words({"replay", file}).code, kExitViolation);
}

TEST_F(ReplayCommand, NamesTheFileThatIsNone) {
  const std::string path = folder_ + "/x.safetensors";
  EXPECT_THAT(run_words({"replay", path}).err,
              HasSubstr(path + ": cannot open it: No such file"));
  std::ofstream(path) << "no tensors here";
  const Outcome output = run_words({"replay", path});
  EXPECT_EQ(output.code, kExitUsage);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr(path + ": the header would be"));
  EXPECT_THAT(run_words({"replay"}).err, HasSubstr("replay which file?"));
  EXPECT_THAT(run_words({"replay", path, "--time-limit", "0"}).err,
              HasSubstr("--time-limit"));
}

// Seeded changes of a real dump: every one ends with a code, none with a crash.
TEST_F(ReplayCommand, SurvivesAnyChangeOfAFile) {
  LiveTensors tensors(
      "batch=2 num_heads=2 num_kv_heads=1 seq_len_q=3 seq_len_kv=9,7 "
      "head_dim=8 dtype=fp16 mask=causal_bottom_right block_size=4");
  const std::string file = dump(tensors, 1);
  std::ifstream in(file, std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  const std::size_t header = good.find("query");
  ASSERT_NE(header, std::string::npos);
  constexpr std::uint64_t kSeed = 4711;
  int codes[5] = {};
  for (std::uint64_t round = 0; round < 1500; ++round) {
    std::string bad = good;
    std::uint64_t bits = derive_seed(kSeed, round);
    // Half of the changes are of the header's digits, where they hurt most.
    for (int n = 0; n < 3; ++n) {
      bits = mix_bits(bits);
      const auto at = static_cast<std::size_t>(uniform_below(
          bits, static_cast<std::int64_t>(std::min<std::size_t>(
                    bad.size(), (bits & 1) != 0 ? 1800 : bad.size()))));
      const bool digit = bad[at] >= '0' && bad[at] <= '9';
      bad[at] = digit ? static_cast<char>('0' + bits % 10)
                      : static_cast<char>(bits >> 16);
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    const int code = run_words({"replay", file}).code;
    ASSERT_TRUE(code >= 0 && code <= 4) << "seed " << kSeed << ' ' << round;
    ++codes[code];
  }
  EXPECT_GT(codes[kExitUsage], 100);
  EXPECT_GT(codes[kExitPass] + codes[kExitViolation], 100);
}

TEST(RuntimeOddsCommand, SaysHowSoonAFaultIsSeen) {
  const Outcome output = run_words(
      {"runtime", "odds", "--rows", "1/4096,all", "--calls-per-second", "100"});
  EXPECT_EQ(output.code, kExitPass) << output.err;
  EXPECT_THAT(output.out, HasSubstr("sample        1/1000"));
  EXPECT_THAT(output.out, HasSubstr("calls for 99.9 %"));
  // ln(0.001) / ln(1 - 1/1000), and a hundredth of it in seconds.
  EXPECT_THAT(output.out, HasSubstr("6905"));
  EXPECT_THAT(output.out, HasSubstr("1.15 min"));
  EXPECT_THAT(output.out, HasSubstr("1 - (1 - f)^k"));
}

TEST(RuntimeOddsCommand, FollowsThePolicyAndTheLayer) {
  const std::string path = testing::TempDir() + "odds.yaml";
  std::ofstream(path) << "version: 1\nruntime:\n  sample: 1/10\n  layers:\n"
                         "    \"a.*\": {sample: 1}\n";
  EXPECT_THAT(
      run_words({"runtime", "odds", "--policy", path, "--rows", "all"}).out,
      HasSubstr("sample        1/10:"));
  EXPECT_THAT(run_words({"runtime", "odds", "--policy", path, "--layer", "a.1",
                         "--rows", "all"})
                  .out,
              HasSubstr("sample        1:"));
  EXPECT_THAT(run_words({"runtime", "odds", "--sample", "0"}).out,
              HasSubstr("never"));
  fs::remove(path);
}

TEST(RuntimeOddsCommand, RefusesWhatIsNoShare) {
  for (const char* rows : {"0", "2", "-1%", "1/0", "x", "", "101%", "nan"})
    EXPECT_EQ(run_words({"runtime", "odds", "--rows", rows}).code, kExitUsage)
        << rows;
  EXPECT_EQ(run_words({"runtime", "odds", "--certainty", "100%"}).code,
            kExitUsage);
  EXPECT_EQ(run_words({"runtime", "odds", "--sample", "7"}).code, kExitUsage);
}

TEST(RuntimeOptionsCommand, ShowsEveryOptionAndTheEnvironment) {
  ASSERT_EQ(setenv("ATTNGUARD_OPTIONS", "sample=1/77", 1), 0);
  EXPECT_THAT(run_words({"runtime", "options"}).out, HasSubstr("now 1/77"));
  ASSERT_EQ(setenv("ATTNGUARD_OPTIONS", "smple=1/77", 1), 0);
  const Outcome output = run_words({"runtime", "options"});
  EXPECT_EQ(output.code, kExitUsage);
  EXPECT_THAT(output.err, HasSubstr("did you mean 'sample'?"));
  EXPECT_EQ(output.out, "");
  unsetenv("ATTNGUARD_OPTIONS");
}

// The page of the live guard shows what these commands print: each shown line
// is one of the output, in order; "..." stands for any number of them.
TEST(RuntimeReadme, ShowsRealOutput) {
  std::ifstream file(ATTNGUARD_TEST_DATA "/../guard/runtime/README.md");
  ASSERT_TRUE(file);
  int blocks = 0;
  std::vector<std::string> printed;
  std::size_t at = 0;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) inside = false;
    if (line.starts_with("$ attnguard runtime ")) {
      inside = true;
      ++blocks;
      std::vector<std::string> words;
      std::istringstream command(line.substr(12));
      for (std::string word; command >> word;) words.push_back(word);
      const Outcome output = run_words(words);
      EXPECT_EQ(output.code, kExitPass) << line << output.err;
      printed.clear();
      at = 0;
      std::istringstream lines(output.out);
      for (std::string one; std::getline(lines, one);) printed.push_back(one);
    } else if (inside && line != "...") {
      while (at < printed.size() && printed[at] != line) ++at;
      EXPECT_LT(at, printed.size()) << "not printed: " << line;
      ++at;
    }
  }
  EXPECT_EQ(blocks, 2);
}

// The page names every metric that there is, and no other.
TEST(RuntimeReadme, NamesEveryMetric) {
  std::ifstream file(ATTNGUARD_TEST_DATA "/../guard/runtime/README.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const ActionCounters actions;
  std::size_t names = 0;
  for (const MetricFamily& family : guard_metrics(GuardCounters{}, &actions)) {
    EXPECT_THAT(page, HasSubstr("\n| `" + family.name + "` |"));
    ++names;
  }
  std::size_t rows = 0;
  for (std::size_t from = 0;
       (from = page.find("\n| `attnguard_", from)) != std::string::npos; ++from)
    ++rows;
  EXPECT_EQ(rows, names);
}

}  // namespace
}  // namespace attnguard
