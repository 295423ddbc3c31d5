// The guard inside LibTorch: what is spoilt is found, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "guard/base/status.h"
#include "guard/runtime/dump_file.h"
#include "guard/runtime/replay.h"
#include "tests/runtime/dump_folder.h"
#include "tests/support/child_program.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<std::string> guarded_libtorch() {
#ifdef ATTNGUARD_GUARDED_LIBTORCH
  return std::string(ATTNGUARD_GUARDED_LIBTORCH);
#else
  return Status(StatusCode::kNotFound,
                "built without it; install libtorch-dev and configure again");
#endif
}

ProgramResult serve(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), guarded_libtorch().value());
  return run_program(arguments);
}

TEST(LibTorchLiveHook, FindsNothingInACleanModel) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  for (const char* seed : {"1", "2", "3"}) {
    const ProgramResult result = serve({"--seed", seed});
    EXPECT_EQ(result.code, 0) << result.output;
    // Two prompts and twelve steps of two layers.
    EXPECT_THAT(result.output,
                HasSubstr("28 attention calls, 28 looked at, 28 judged"));
    EXPECT_THAT(result.output, HasSubstr("recompute"));
    EXPECT_THAT(result.output, HasSubstr("mask"));
    EXPECT_THAT(result.output, Not(HasSubstr("not judged")));
  }
}

TEST(LibTorchLiveHook, FindsNothingInACleanBf16Model) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const ProgramResult result = serve({"--bf16"});
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST(LibTorchLiveHook, FindsAFlippedMaskBit) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const ProgramResult result = serve({"--corrupt", "mask-bit"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("sdpa.1: engine: mask: batch 0, query 0: the mask "
                        "shows key 25, against causal_bottom_right"));
}

// What the hook finds goes the way of what the guard finds.
TEST(LibTorchLiveHook, WhatItFindsIsLoggedAndDumped) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const DumpFolder folder;
  ::setenv("ATTNGUARD_OPTIONS",
           ("on_engine=log,dump:dump_dir='" + folder.path() + "'").c_str(), 1);
  const ProgramResult result = serve({"--corrupt", "mask-bit"});
  ::unsetenv("ATTNGUARD_OPTIONS");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("attnguard: sdpa.1: engine: mask: "));
  EXPECT_THAT(result.output,
              HasSubstr("attnguard: sdpa.1: wrote " + folder.path()));
  ASSERT_EQ(folder.files().size(), 1u) << result.output;
  const Result<Dump> dump = Dump::load(folder.files()[0]);
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  const DumpRecord& record = dump.value().record();
  EXPECT_EQ(record.engine, "libtorch");
  EXPECT_EQ(record.check, "engine");
  EXPECT_EQ(record.engine_check, "mask");
  EXPECT_TRUE(record.has_tensors);
  ASSERT_EQ(record.findings.size(), 1u);
  EXPECT_EQ(record.findings[0].kind, FindingKind::kLeak);
  EXPECT_EQ(record.findings[0].query, 0);
  EXPECT_EQ(record.findings[0].key, 25);
  EXPECT_EQ(judge_call(judged_call(dump.value()), record.findings,
                       std::chrono::steady_clock::now() + kLong)
                .verdict,
            Verdict::kViolation);
}

TEST(LibTorchLiveHook, ItsOwnChecksAreOffWhereThePolicySaysSo) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  ::setenv("ATTNGUARD_OPTIONS", "engine=off", 1);
  const ProgramResult result = serve({"--corrupt", "mask-bit"});
  ::unsetenv("ATTNGUARD_OPTIONS");
  EXPECT_THAT(result.output, Not(HasSubstr("engine: mask")));
  EXPECT_THAT(result.output, Not(HasSubstr("  mask  ")));
  EXPECT_THAT(result.output, HasSubstr("recompute"));
}

TEST(LibTorchLiveHook, FindsAStalePage) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const ProgramResult result = serve({"--corrupt", "stale-page"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("sdpa.1: recompute: "));
}

TEST(LibTorchLiveHook, FindsAWrongScale) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const ProgramResult result = serve({"--corrupt", "scale"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("sdpa.1: recompute: "));
}

TEST(LibTorchLiveHook, FindsNan) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const ProgramResult result = serve({"--corrupt", "nan"});
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("sdpa.1: finite: "));
}

TEST(LibTorchLiveHook, TheExampleListensToTheEnvironment) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  ::setenv("ATTNGUARD_OPTIONS", "smple=1", 1);
  const ProgramResult wrong = serve({});
  ::setenv("ATTNGUARD_OPTIONS", "help=1", 1);
  const ProgramResult help = serve({});
  ::unsetenv("ATTNGUARD_OPTIONS");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("did you mean 'sample'"));
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("max_overhead=SHARE"));
}

TEST(LibTorchLiveHook, ProbabilityZeroSeesNothing) {
  const Result<std::string> program = guarded_libtorch();
  ATTNGUARD_SKIP_WITHOUT("libtorch", program);
  const ProgramResult result =
      serve({"--corrupt", "nan", "--probability", "0"});
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output,
              HasSubstr("0 attention calls, 0 looked at, 0 judged"));
}

}  // namespace
}  // namespace attnguard
