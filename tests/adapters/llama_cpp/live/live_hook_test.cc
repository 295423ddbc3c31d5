// The guard inside llama.cpp: what is spoilt is found, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "guard/runtime/dump_file.h"
#include "guard/runtime/replay.h"
#include "tests/adapters/llama_cpp/live/guarded_llama.h"
#include "tests/runtime/dump_folder.h"
#include "tests/support/child_program.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Way {
  std::string flash, cells, cache;
};

std::string way_name(const testing::TestParamInfo<Way>& way) {
  return "Flash" + way.param.flash + way.param.cells + way.param.cache;
}

void PrintTo(const Way& way, std::ostream* to) {
  *to << "flash " << way.flash << ", cells " << way.cells << ", cache "
      << way.cache;
}

class LlamaLiveHook : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const Result<std::string> program = guarded_llama();
    ATTNGUARD_SKIP_WITHOUT("ggml", program);
    // Types in blocks of 32 need as many channels.
    if (GetParam().cache == "q8_0") scale_ = "0.17677669529";
    model_ = tiny_model("llama", GetParam().cache == "q8_0" ? 32 : 16);
  }
  void TearDown() override {
    if (!model_.empty()) std::remove(model_.c_str());
  }

  ProgramResult serve(std::vector<std::string> more) {
    std::vector<std::string> argv = {guarded_llama().value(),
                                     "--model",
                                     model_,
                                     "--flash",
                                     GetParam().flash,
                                     "--cells",
                                     GetParam().cells,
                                     "--cache",
                                     GetParam().cache,
                                     "--scale",
                                     scale_};
    argv.insert(argv.end(), more.begin(), more.end());
    return run_program(argv);
  }

  std::string model_;
  std::string scale_ = "0.25";  // 1 / sqrt(head_dim)
};

TEST_P(LlamaLiveHook, FindsNothingInACleanModel) {
  const ProgramResult result = serve({});
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no violation"));
  EXPECT_THAT(result.output, Not(HasSubstr("not judged")));
  // Everything was looked at: 26 batches, or more graphs, of two layers.
  EXPECT_THAT(result.output, HasSubstr("recompute"));
  EXPECT_THAT(result.output, HasSubstr("mask"));
  EXPECT_THAT(result.output, HasSubstr("cache-cell"));
  if (GetParam().flash == "off") {
    EXPECT_THAT(result.output, HasSubstr("weights"));
  }
}

TEST_P(LlamaLiveHook, FindsAFlippedMaskBit) {
  const ProgramResult result = serve({"--corrupt", "mask-bit"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("corrupted: layer 0, graph 0: row"));
  EXPECT_THAT(result.output,
              HasSubstr("blk.0.attn: engine: mask: the mask of sequence 0, "
                        "position 0 shows cell 1, which is its own position "
                        "1"));
}

TEST_P(LlamaLiveHook, FindsAStalePage) {
  const ProgramResult result = serve({"--corrupt", "stale-page"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("blk.1.attn: engine: cache-cell: sequence 0, position "
                        "4: cell 4 is not what it was"));
}

TEST_P(LlamaLiveHook, FindsAWrongScale) {
  // The kernel rounds the query to q8_0 there, which explains as much.
  if (GetParam().cache == "q8_0") GTEST_SKIP() << "q8_0 is too coarse";
  const ProgramResult result = serve({"--corrupt", "scale"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("blk.1.attn: recompute: "));
}

TEST_P(LlamaLiveHook, FindsNan) {
  const ProgramResult result = serve({"--corrupt", "nan"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("blk.1.attn: finite: "));
}

// The dump of the hook's own check, if there is one file of it.
Result<Dump> dump_of_check(const DumpFolder& folder, const std::string& check) {
  std::string found;
  for (const std::string& file : folder.files())
    if (file.ends_with("-engine-" + check + ".safetensors")) {
      EXPECT_EQ(found, "") << file;
      found = file;
    }
  if (found.empty()) return Status(StatusCode::kNotFound, "no file");
  return Dump::load(found);
}

Rejudged judge_again(const Dump& dump) {
  return judge_call(judged_call(dump), dump.record().findings,
                    std::chrono::steady_clock::now() + kLong);
}

// What the hook finds goes the way of what the guard finds: a line in the log,
// and a file with the call.
TEST_P(LlamaLiveHook, WhatItFindsIsLoggedAndDumped) {
  struct Case {
    const char *fault, *check, *layer;
  };
  for (const Case& one : {Case{"mask-bit", "mask", "blk.0.attn"},
                          Case{"stale-page", "cache-cell", "blk.1.attn"}}) {
    SCOPED_TRACE(one.fault);
    const DumpFolder folder;
    ::setenv(
        "ATTNGUARD_OPTIONS",
        ("on_engine=log,dump:dump_max_files=1:dump_dir='" + folder.path() + "'")
            .c_str(),
        1);
    const ProgramResult result = serve({"--corrupt", one.fault});
    ::unsetenv("ATTNGUARD_OPTIONS");
    EXPECT_EQ(result.code, 1) << result.output;
    EXPECT_THAT(result.output,
                HasSubstr("attnguard: " + std::string(one.layer) +
                          ": engine: " + one.check + ": "));
    EXPECT_THAT(result.output,
                HasSubstr("attnguard: " + std::string(one.layer) + ": wrote " +
                          folder.path()));
    const Result<Dump> dump = dump_of_check(folder, one.check);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    const DumpRecord& record = dump.value().record();
    EXPECT_EQ(record.engine, "llama.cpp");
    EXPECT_EQ(record.layer, one.layer);
    EXPECT_TRUE(record.has_tensors);
    ASSERT_EQ(record.findings.size(), 1u);
    EXPECT_EQ(record.findings[0].batch, 0);
    EXPECT_GE(record.findings[0].query, 0);
    EXPECT_THAT(record.engine_text, HasSubstr(": sequence 0, position"));
    // A wrong mask made the output wrong; a stale page is what the kernel was
    // given, and what it made of that is right.
    EXPECT_EQ(judge_again(dump.value()).verdict,
              std::string(one.fault) == "mask-bit" ? Verdict::kViolation
                                                   : Verdict::kPass);
  }
}

TEST_P(LlamaLiveHook, ItsOwnChecksAreOffWhereThePolicySaysSo) {
  ::setenv("ATTNGUARD_OPTIONS", "engine=off", 1);
  const ProgramResult result = serve({"--corrupt", "stale-page"});
  ::unsetenv("ATTNGUARD_OPTIONS");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("cache-cell")));
  EXPECT_THAT(result.output, HasSubstr("recompute"));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LlamaLiveHook,
    testing::Values(Way{"on", "unified", "f16"}, Way{"on", "streams", "f16"},
                    Way{"off", "unified", "f16"}, Way{"off", "streams", "f16"},
                    Way{"on", "unified", "q8_0"}, Way{"on", "unified", "bf16"},
                    Way{"off", "unified", "f32"}),
    way_name);

class LlamaModels : public testing::TestWithParam<std::string> {};

TEST_P(LlamaModels, AreClean) {
  const Result<std::string> program = guarded_llama();
  ATTNGUARD_SKIP_WITHOUT("ggml", program);
  const std::string model = tiny_model(GetParam());
  for (const std::string flash : {"on", "off"})
    for (const std::string ubatch : {"512", "16"}) {
      std::vector<std::string> argv = {
          program.value(), "--model", model,     "--flash", flash, "--ubatch",
          ubatch,          "--cells", "streams", "--steps", "16"};
      if (const std::uint32_t window = tiny_gguf(GetParam()).window; window > 0)
        argv.insert(argv.end(), {"--window", std::to_string(window),
                                 "--windowed-layers", "2"});
      const ProgramResult result = run_program(argv);
      EXPECT_EQ(result.code, 0) << result.output;
      EXPECT_THAT(result.output, Not(HasSubstr("not judged")));
    }
  std::remove(model.c_str());
}

INSTANTIATE_TEST_SUITE_P(Models, LlamaModels,
                         testing::Values("llama", "llama-mqa", "llama-mha",
                                         "qwen2", "gemma2", "gemma3"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(LlamaLiveHookUntold, JudgesByTheEnginesOwnMask) {
  const Result<std::string> program = guarded_llama();
  ATTNGUARD_SKIP_WITHOUT("ggml", program);
  const std::string model = tiny_model("llama");
  const auto serve = [&](const std::string& fault) {
    return run_program(
        {program.value(), "--model", model, "--untold", "--corrupt", fault});
  };
  EXPECT_EQ(serve("none").code, 0);
  EXPECT_EQ(serve("nan").code, 1);
  // What the mask says is all that it has.
  EXPECT_EQ(serve("mask-bit").code, 0);
  std::remove(model.c_str());
}

TEST(LlamaLiveHookUntold, SampleNoneLooksAtNothing) {
  const Result<std::string> program = guarded_llama();
  ATTNGUARD_SKIP_WITHOUT("ggml", program);
  const std::string model = tiny_model("llama");
  const ProgramResult result = run_program(
      {program.value(), "--model", model, "--sample", "0", "--corrupt", "nan"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, HasSubstr(" 0 looked at, 0 judged"));
  std::remove(model.c_str());
}

// What README.md shows is what is printed.
TEST(GuardedLlama, PrintsWhatTheReadmeShows) {
  const Result<std::string> program = guarded_llama();
  ATTNGUARD_SKIP_WITHOUT("ggml", program);
  std::ifstream file(std::string(ATTNGUARD_TEST_DATA) + "/../README.md");
  const std::string readme((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  const std::string command =
      "$ guarded_llama --model tiny.gguf --scale 0.25 --corrupt stale-page\n";
  const std::size_t begin = readme.find(command);
  ASSERT_NE(begin, readme.npos);
  const std::size_t first = begin + command.size();
  const std::string shown =
      readme.substr(first, readme.find("```", first) - first);
  const std::string model = tiny_model("llama");
  EXPECT_EQ(run_program({program.value(), "--model", model, "--scale", "0.25",
                         "--corrupt", "stale-page"})
                .output,
            shown);
  std::remove(model.c_str());
}

TEST(GuardedLlama, SaysWhatIsWrongWithItsArguments) {
  const Result<std::string> program = guarded_llama();
  ATTNGUARD_SKIP_WITHOUT("ggml", program);
  ::setenv("ATTNGUARD_OPTIONS", "smple=1", 1);
  const ProgramResult mistyped = run_program({program.value(), "--model", "x"});
  ::unsetenv("ATTNGUARD_OPTIONS");
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_THAT(mistyped.output, HasSubstr("did you mean 'sample'"));
  EXPECT_EQ(run_program({program.value()}).code, 2);
  EXPECT_EQ(
      run_program({program.value(), "--model", "x", "--corrupt", "all"}).code,
      2);
  const ProgramResult result =
      run_program({program.value(), "--model", "/no/such.gguf"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.output,
              HasSubstr("llama.cpp cannot load '/no/such.gguf'"));
}

}  // namespace
}  // namespace attnguard
