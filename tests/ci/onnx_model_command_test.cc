// `attnguard model` on .onnx files that the tests write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "adapters/onnxruntime/model.h"
#include "ci/cli.h"
#include "tests/adapters/onnxruntime/tiny_model.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), {"attnguard", "model"});
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  Outcome outcome;
  outcome.code =
      run_command(static_cast<int>(argv.size()), argv.data(), out, err);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

// What the README shows: the softmax over the query axis, with a cache.
TinyModel decoder(TinyModel::Fault fault) {
  return {.fault = fault,
          .cache = TinyModel::Cache::kTwo,
          .attention_mask = true,
          .position_ids = true};
}

TEST(OnnxModelCommand, PassesACleanModelAndFindsALeak) {
  const std::string clean =
      decoder(TinyModel::Fault::kNone).write("clean.onnx");
  const std::string leaks =
      decoder(TinyModel::Fault::kQueryAxis).write("leaks.onnx");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", open_onnx_model(clean, {}));
  const Outcome right = run({clean, "--option", "threads=1", "--tokens", "16"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_THAT(right.out, HasSubstr("model-future"));
  const Outcome wrong = run(
      {leaks, "--option", "threads=1", "--tokens", "16", "--format", "json"});
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  const nlohmann::json report = nlohmann::json::parse(wrong.out);
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["influence_map"]["cells"],
            nlohmann::json::parse(R"(["#X", "##"])"));
}

TEST(OnnxModelCommand, NamesWhatIsWrongWithOptionsAndFiles) {
  const std::string file = decoder(TinyModel::Fault::kNone).write();
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", open_onnx_model(file, {}));
  const Outcome unknown = run({file, "--option", "thread=1"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'threads'?"));
  const Outcome named = run({file, "--option", "input=input_idx"});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err, HasSubstr("no such name; did you mean 'input_ids'?"));
  EXPECT_THAT(named.err, HasSubstr("past_key_values.1.value float [n2, 4"));
  const Outcome text =
      run({lint_test::write_file("text.onnx", "this is no model")});
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, HasSubstr("CreateSession"));
}

std::vector<std::string> lines_of(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The session of the README, line by line; "..." stands for any number of
// lines, and at the end of a line for the rest of it.
TEST(OnnxModelCommand, PrintsWhatTheReadmeShows) {
  const std::string path =
      decoder(TinyModel::Fault::kQueryAxis).write("decoder.onnx");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", open_onnx_model(path, {}));
  std::ifstream file(ATTNGUARD_TEST_DATA "/../README.md");
  const std::string begin = "$ attnguard model decoder.onnx";
  std::vector<std::string> shown;
  bool inside = false;
  for (const std::string& line : lines_of(file)) {
    if (inside && line == "```") break;
    if (inside) shown.push_back(line);
    inside |= line.starts_with(begin);
  }
  ASSERT_GT(shown.size(), 10u);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(lint_test::temporary_folder());
  const Outcome outcome = run({"decoder.onnx", "--option", "threads=1"});
  std::filesystem::current_path(before);
  std::istringstream stream(outcome.out);
  const std::vector<std::string> printed = lines_of(stream);
  std::size_t at = 0;
  bool skip = false;
  for (const std::string& line : shown) {
    if (line == "...") {
      skip = true;
      continue;
    }
    const auto matches = [&line](const std::string& real) {
      return line.ends_with("...")
                 ? real.starts_with(line.substr(0, line.size() - 3))
                 : real == line;
    };
    while (skip && at < printed.size() && !matches(printed[at])) ++at;
    ASSERT_TRUE(at < printed.size() && matches(printed[at]))
        << "the README shows\n"
        << line << "\nof\n"
        << outcome.out;
    ++at;
    skip = false;
  }
}

}  // namespace
}  // namespace attnguard
