// `attnguard model` as users run it: the program itself, on tiny .gguf files,
// damaged ones among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "adapters/llama_cpp/model.h"
#include "ci/child_process.h"
#include "ci/cli.h"
#include "guard/base/text.h"
#include "guard/model/model_check.h"
#include "tests/support/readme_sessions.h"
#include "tests/support/required_engine.h"
#include "tests/support/tiny_gguf.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

namespace fs = std::filesystem;

struct ProgramText {
  int code = -1;
  std::string text;  // Standard output and error.
};

// Runs the program that was built.
ProgramText attnguard(const std::string& words,
                      const std::string& folder = "/") {
  const std::string command = "cd " + shell_quote(folder) + " && " +
                              shell_quote(ATTNGUARD_COMMAND) + " " + words +
                              " 2>&1";
  ProgramText outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> bytes;
  while (const std::size_t count = fread(bytes.data(), 1, bytes.size(), pipe))
    outcome.text.append(bytes.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

class ModelCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("attnguard_model_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string write_model() const {
    return write("tiny.gguf", tiny_gguf_bytes(tiny_gguf("llama"), 1));
  }
  // Whether llama.cpp is here; opening it here tells why not.
  Result<Model> llama() const { return open_llama_model(write_model(), {}); }

  fs::path folder_;
};

TEST_F(ModelCommand, PassesACleanModel) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const ProgramText outcome = attnguard("model " + write_model());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const char* part :
       {"model  tiny.gguf\n", "model-future       pass", "loss of the text",
        "influence map\n  8 tokens, in one pass", "\npass  8 checks: 8 passed"})
    EXPECT_THAT(outcome.text, HasSubstr(part));
}

TEST_F(ModelCommand, FindsCausalAttentionSwitchedOffAndItsReplayDoesToo) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const ProgramText outcome =
      attnguard("model " + write_model() +
                " --option causal=0 --format json --tokens 24 --seed 7");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  const Json report = Json::parse(outcome.text);
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["influence_map"]["cells"], Json({"#X", "##"}));
  EXPECT_EQ(report["tokens"], 24);
  const std::string replay = report["replay"];
  ASSERT_THAT(replay, StartsWith("attnguard model "));
  const ProgramText again = attnguard(replay.substr(10));
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.text, HasSubstr("violation  1 check: 1 violated"));
}

TEST_F(ModelCommand, NothingCheckedIsInconclusive) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const ProgramText outcome = attnguard(
      "model " + write_model() + " --option sequences=1 --check model-batch");
  EXPECT_EQ(outcome.code, 4) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("the model takes one sequence"));
}

TEST_F(ModelCommand, WritesOtherFormatsAndFiles) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const ProgramText outcome =
      attnguard("model " + write_model() + " --check model-repeatable" +
                " --format junit --output " + path("report.xml"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "");
  std::ifstream file(path("report.xml"));
  const std::string report{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(report, HasSubstr("model-repeatable"));
}

TEST_F(ModelCommand, ReadsAGivenText) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const std::string text = write("ids.txt", "[1, 2, 3, 4]\n5 6 7 8\n");
  const ProgramText outcome = attnguard("model " + write_model() + " --text " +
                                        text + " --check model-loss-gap");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("8 given tokens"));
  write("ids.txt", "1 2 3 4000");
  EXPECT_THAT(attnguard("model " + write_model() + " --text " + text).text,
              HasSubstr("token 4000 is not in the model's vocabulary of 96"));
  write("ids.txt", "");
  EXPECT_THAT(attnguard("model " + write_model() + " --text " + text).text,
              HasSubstr("ids.txt is empty"));
  write("ids.txt", "1 2 three");
  EXPECT_THAT(attnguard("model " + write_model() + " --text " + text).text,
              HasSubstr("'three' is no token id"));
}

TEST_F(ModelCommand, TheReplayOfATextHasItsFileSeedAndRounding) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const std::string text = write("my ids.txt", "1 2 3 4 5 6 7 8");
  const ProgramText outcome = attnguard(
      "model " + write_model() + " --option causal=0 --format json --seed 7" +
      " --rounding 16 --text " + shell_quote(text));
  ASSERT_EQ(outcome.code, 1) << outcome.text;
  const std::string replay = Json::parse(outcome.text)["replay"];
  EXPECT_THAT(replay, HasSubstr(" --text " + shell_quote(text) +
                                " --seed 7 --rounding 16 --check "));
  EXPECT_EQ(attnguard(replay.substr(10)).code, 1) << replay;
}

TEST_F(ModelCommand, PrintsWhatTheReadmeShows) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  write_model();
  EXPECT_EQ(
      expect_readme_sessions("model tiny.gguf",
                             [&](const std::string& words) {
                               return attnguard(words, folder_.string()).text;
                             }),
      2);
}

// No damage may crash the command, hang it, or pass for a usable answer
// without a word.
TEST_F(ModelCommand, DamagedFilesGiveAnErrorAndNoCrash) {
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", llama());
  const std::string good = tiny_gguf_bytes(tiny_gguf("llama"), 1);
  for (const std::size_t size :
       {4, 8, 23, 24, 60, 400, 700, 1200, 2500, 100000}) {
    const ProgramText outcome =
        attnguard("model " + write("cut.gguf", good.substr(0, size)));
    EXPECT_THAT(outcome.code, testing::AnyOf(2, 3)) << size << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("cut.gguf")) << size;
  }
  for (std::size_t at = 5; at < 1200; at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    const ProgramText outcome =
        attnguard("model " + write("flip.gguf", bad) +
                  " --check model-repeatable --timeout 20");
    EXPECT_GE(outcome.code, 0) << at;
    EXPECT_LE(outcome.code, 4) << at;
    EXPECT_THAT(outcome.text, HasSubstr("attnguard")) << at;
  }
}

TEST_F(ModelCommand, MissingFilesFoldersAndOtherFormatsAreUsageErrors) {
  const auto expect = [&](const std::string& words, const std::string& says) {
    const ProgramText outcome = attnguard("model " + words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.text, StartsWith("attnguard: error: "));
    EXPECT_THAT(outcome.text, HasSubstr(says));
  };
  expect("", "which model?");
  expect(path("missing.gguf"), "No such file");
  expect(folder_.string(), "it is a folder");
  expect(write("empty.gguf", ""), "it is empty");
  expect(write("words.gguf", "hello world"), "does not begin with 'GGUF'");
  expect(write("model.bin", "hello world"), "no model file that can be opened");
  const std::string model = write_model();
  expect(model + " --check model-futur", "did you mean 'model-future'?");
  expect(model + " --tokens 3", "--tokens: '3' is not a whole number from 4");
  expect(model + " --rounding -1", "--rounding: '-1'");
  expect(model + " --option threads", "write name=value");
  expect(model + " --option a=1 --option a=2", "given twice");
  expect(model + " --format jsn", "did you mean 'json'?");
}

TEST_F(ModelCommand, ListAndExplainKnowItsChecks) {
  const ProgramText list = attnguard("list model-checks");
  EXPECT_EQ(list.code, 0);
  for (const ModelCheckInfo* check : all_model_checks()) {
    EXPECT_THAT(list.text, HasSubstr(std::string(check->id) + " "));
    const ProgramText page = attnguard("explain " + std::string(check->id));
    EXPECT_EQ(page.code, 0);
    EXPECT_THAT(page.text, StartsWith(std::string(check->id) + ": "));
    EXPECT_THAT(page.text, HasSubstr("\nCost\n  "));
  }
  EXPECT_THAT(attnguard("explain model-futur").text,
              HasSubstr("did you mean 'model-future'?"));
}

TEST(ChildProcess, SaysHowTheChildEnded) {
  const auto run = [](auto body, int seconds = 20) {
    const Result<ChildResult> result =
        run_in_child(body, std::chrono::seconds(seconds));
    EXPECT_TRUE(result.ok());
    return result.value();
  };
  const ChildResult good = run([](std::ostream& out, std::ostream& err) {
    out << std::string(300000, 'x');
    err << "a word\n";
    return 7;
  });
  EXPECT_TRUE(good.by_itself());
  EXPECT_EQ(good.exit_code, 7);
  EXPECT_EQ(good.out.size(), 300000u);
  EXPECT_EQ(good.err, "a word\n");
  const ChildResult crash = run([](std::ostream&, std::ostream& err) -> int {
    err << "assertion failed" << std::endl;
    std::abort();
  });
  EXPECT_FALSE(crash.by_itself());
  EXPECT_EQ(crash.what_happened(),
            "crashed with signal 6 (Aborted): assertion failed");
  const ChildResult hang = run(
      [](std::ostream&, std::ostream&) -> int {
        for (;;) sleep(1);
      },
      1);
  EXPECT_TRUE(hang.timed_out);
  EXPECT_THAT(hang.what_happened(), StartsWith("did not end in time"));
  // Without pipes it is waited for no longer.
  const ChildResult silent = run(
      [](std::ostream&, std::ostream&) -> int {
        for (int descriptor = 1; descriptor < 256; ++descriptor)
          close(descriptor);
        for (;;) sleep(1);
      },
      1);
  EXPECT_TRUE(silent.timed_out);
}

}  // namespace
}  // namespace attnguard
