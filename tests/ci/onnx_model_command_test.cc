// `attnguard model` on .onnx files that the tests write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "adapters/onnxruntime/model.h"
#include "tests/adapters/onnxruntime/tiny_model.h"
#include "tests/ci/run_words.h"
#include "tests/support/readme_sessions.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

Outcome run_model(std::vector<std::string> words) {
  words.insert(words.begin(), "model");
  return run_words(words);
}

// With a cache and every usual input.
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
  const Outcome right =
      run_model({clean, "--option", "threads=1", "--tokens", "16"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_THAT(right.out, HasSubstr("model-future"));
  const Outcome wrong = run_model(
      {leaks, "--option", "threads=1", "--tokens", "16", "--format", "json"});
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  const nlohmann::json report = nlohmann::json::parse(wrong.out);
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["influence_map"]["cells"],
            nlohmann::json::parse(R"(["#X", "##"])"));
}

TEST(OnnxModelCommand, PrintsWhatTheReadmeShows) {
  const std::string file =
      decoder(TinyModel::Fault::kQueryAxis).write("leaks.onnx");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", open_onnx_model(file, {}));
  const int sessions =
      expect_readme_sessions("model leaks.onnx", [&](const std::string& words) {
        std::istringstream rest(words.substr(words.find("leaks.onnx") + 10));
        std::vector<std::string> all = {file};
        for (std::string word; rest >> word;) all.push_back(word);
        return run_model(all).out;
      });
  EXPECT_EQ(sessions, 1);
}

TEST(OnnxModelCommand, NamesWhatIsWrongWithOptionsAndFiles) {
  const std::string file = decoder(TinyModel::Fault::kNone).write();
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", open_onnx_model(file, {}));
  const Outcome unknown = run_model({file, "--option", "thread=1"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'threads'?"));
  const Outcome named = run_model({file, "--option", "input=input_idx"});
  EXPECT_EQ(named.code, 2);
  EXPECT_THAT(named.err, HasSubstr("no such name; did you mean 'input_ids'?"));
  EXPECT_THAT(named.err, HasSubstr("past_key_values.1.value float [n2, 4"));
  const Outcome text =
      run_model({lint_test::write_file("text.onnx", "this is no model")});
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, HasSubstr("CreateSession"));
}

}  // namespace
}  // namespace attnguard
