// Whole models on llama.cpp: tiny random-weight files of several architectures
// pass with flash attention on and off, and causal attention that is switched
// off is found and drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "adapters/llama_cpp/model.h"
#include "guard/model/verify_model.h"
#include "tests/support/model_results.h"
#include "tests/support/required_engine.h"
#include "tests/support/tiny_gguf.h"

namespace attnguard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;
using Options = std::map<std::string, std::string>;

class LlamaModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("attnguard_gguf_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const TinyGguf& model, std::uint64_t seed = 1) {
    const std::string path =
        (folder_ / (std::string(model.name) + ".gguf")).string();
    EXPECT_TRUE(write_tiny_gguf(model, seed, path).ok());
    return path;
  }
  Result<Model> open(const std::string& name, Options options = {}) {
    options.emplace("threads", "1");
    return open_llama_model(write(tiny_gguf(name)), options);
  }

  fs::path folder_;
};

std::string notes(const ModelResult& result) {
  std::string out = result.note;
  for (const CheckResult& check : result.checks) {
    out += "\n" + check.check + ": " + check.note + " " + check.coverage;
    if (!check.findings.empty()) out += " " + check.findings.front().message;
  }
  return out;
}

TEST_F(LlamaModel, EveryArchitecturePassesEveryCheck) {
  for (const TinyGguf& tiny : tiny_ggufs()) {
    for (const char* flash : {"on", "off"}) {
      Result<Model> model =
          open_llama_model(write(tiny), {{"threads", "1"}, {"flash", flash}});
      ATTNGUARD_SKIP_WITHOUT("llama.cpp", model);
      EXPECT_EQ(model.value().vocab_size,
                static_cast<std::int32_t>(tiny.vocab_size));
      EXPECT_THAT(model.value().description,
                  HasSubstr(std::string(tiny.architecture)));
      const ModelResult result = verify_model(model.value());
      EXPECT_EQ(with_verdict(result, Verdict::kPass).size(), 8u)
          << tiny.name << " flash=" << flash << notes(result);
    }
  }
}

TEST_F(LlamaModel, SmallPiecesOwnCachesAndOtherCacheTypesPass) {
  const std::vector<Options> ways = {
      {{"ubatch", "16"}},   {{"unified", "0"}},
      {{"kv", "f32"}},      {{"kv", "f32"}, {"flash", "off"}},
      {{"sequences", "1"}}, {{"context", "60"}, {"ubatch", "7"}}};
  for (const char* name : {"llama", "gemma3"}) {
    for (const Options& options : ways) {
      Result<Model> model = open(name, options);
      ATTNGUARD_SKIP_WITHOUT("llama.cpp", model);
      const ModelResult result = verify_model(model.value());
      EXPECT_EQ(result.verdict, Verdict::kPass)
          << name << ' ' << options.begin()->first << '='
          << options.begin()->second << notes(result);
    }
  }
}

// Bounds as wide as such caches need at worst would hide one token of these
// models: 32 roundoffs are inconclusive, and what is needed is far less.
TEST_F(LlamaModel, ACacheOfEightBitsPasses) {
  TinyGguf wide = tiny_gguf("llama");
  wide.head_dim = 32;  // A block of q8_0.
  Result<Model> model = open_llama_model(
      write(wide), {{"threads", "1"}, {"kv", "q8_0"}, {"flash", "on"}});
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", model);
  ModelResult result = verify_model(model.value(), {.rounding = 8});
  EXPECT_EQ(result.verdict, Verdict::kPass) << notes(result);
  model = open("llama", {{"kv", "bf16"}});
  ASSERT_TRUE(model.ok());
  result = verify_model(model.value(), {.rounding = 8});
  EXPECT_EQ(result.verdict, Verdict::kPass) << notes(result);
}

TEST_F(LlamaModel, CausalAttentionSwitchedOffIsFoundAndDrawn) {
  for (const char* name : {"llama", "qwen2", "gemma2"}) {
    for (const char* flash : {"on", "off"}) {
      Result<Model> model = open(name, {{"causal", "0"}, {"flash", flash}});
      ATTNGUARD_SKIP_WITHOUT("llama.cpp", model);
      const ModelResult result = verify_model(model.value());
      EXPECT_EQ(result.verdict, Verdict::kViolation);
      EXPECT_THAT(with_verdict(result, Verdict::kViolation),
                  ElementsAre("model-future", "model-prefix",
                              "model-incremental", "model-loss-gap"))
          << name << notes(result);
      ASSERT_TRUE(result.map);
      EXPECT_EQ(result.map->problem, "2 tokens, in one pass");
      EXPECT_THAT(result.map->cells, ElementsAre("#X", "##"));
      ASSERT_TRUE(result.loss);
      EXPECT_GT(result.loss->mean_difference, 3 * result.loss->bound);
    }
  }
}

TEST_F(LlamaModel, BadFilesAndOptionsSayWhatIsWrong) {
  Result<Model> model = open("llama");
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", model);
  EXPECT_THAT(open("llama", {{"flahs", "on"}}).status().message(),
              HasSubstr("did you mean 'flash'"));
  EXPECT_THAT(open("llama", {{"flash", "maybe"}}).status().message(),
              HasSubstr("option flash: unknown 'maybe'"));
  EXPECT_THAT(open("llama", {{"ubatch", "0"}}).status().message(),
              HasSubstr("option ubatch: '0' is not a whole number from 1"));
  EXPECT_THAT(open("llama", {{"causal", "no"}}).status().message(),
              HasSubstr("0 or 1"));
  const std::string missing = (folder_ / "missing.gguf").string();
  EXPECT_EQ(open_llama_model(missing, {}).status().code(), StatusCode::kIo);
  EXPECT_EQ(open_llama_model(folder_.string(), {}).status().code(),
            StatusCode::kIo);
  TinyGguf unknown = tiny_gguf("llama");
  unknown.architecture = "llamb";
  EXPECT_THAT(open_llama_model(write(unknown), {}).status().message(),
              HasSubstr("llamb"));
  // A cache of 8 bits needs flash attention.
  EXPECT_FALSE(open("llama", {{"kv", "q8_0"}, {"flash", "off"}}).ok());
}

TEST_F(LlamaModel, CausalOffNeedsABatchAtOnceAndSaysSo) {
  Result<Model> model = open("llama", {{"causal", "0"}, {"ubatch", "16"}});
  ATTNGUARD_SKIP_WITHOUT("llama.cpp", model);
  const ModelResult result = verify_model(model.value());
  EXPECT_EQ(result.verdict, Verdict::kEngineError);
  EXPECT_THAT(result.note, HasSubstr("set ubatch=48"));
}

TEST(TinyGgufs, AreTheSameForTheSameSeedAndDifferForAnother) {
  for (const TinyGguf& tiny : tiny_ggufs()) {
    EXPECT_EQ(tiny_gguf_bytes(tiny, 3), tiny_gguf_bytes(tiny, 3));
    EXPECT_NE(tiny_gguf_bytes(tiny, 3), tiny_gguf_bytes(tiny, 4));
  }
}

}  // namespace
}  // namespace attnguard
