// The guard inside LibTorch: what is spoilt is found, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "guard/base/status.h"
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
              HasSubstr("sdpa.1: mask: batch 0, query 0: the mask shows key "
                        "25, against causal_bottom_right"));
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
