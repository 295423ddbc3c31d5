// The guard on a real engine: every kernel and cache type of ggml passes, and
// what this release gets wrong is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/llama_cpp/ggml.h"
#include "tests/adapters/llama_cpp/required_engine.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

Result<Engine> open_ggml(const std::string& text) {
  std::string adapter;
  Result<EngineSpec> spec = parse_engine_spec("ggml:" + text, adapter);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return kGgmlAdapter.open(spec.value());
}

struct GgmlCase {
  const char* name;
  const char* spec;
  const char* dtype;
};

class GgmlUnderGuard : public testing::TestWithParam<GgmlCase> {};

TEST_P(GgmlUnderGuard, PassesEveryCheck) {
  // One thread: ggml's threads spin at barriers, and tests run side by side.
  const Result<Engine> engine =
      open_ggml(std::string(GetParam().spec) + ",threads=1");
  ATTNGUARD_SKIP_WITHOUT_GGML(engine);
  for (const char* shape :
       {"batch=2 num_heads=6 num_kv_heads=2 seq_len=100 head_dim=64 "
        "mask=causal_bottom_right",
        "num_heads=8 num_kv_heads=2 seq_len_q=1 seq_len_kv=257 "
        "head_dim=128 mask=causal_bottom_right",
        "num_heads=2 seq_len_q=33 seq_len_kv=129 head_dim=64 mask=full",
        "batch=2 num_heads=4 seq_len_q=65 seq_len_kv=65,40 head_dim=96 "
        "mask=prefix_lm(prefix=7)",
        "num_heads=2 seq_len=130 head_dim=64 "
        "mask=causal_bottom_right+sliding_window(left=31,right=0)"}) {
    const ProblemResult result = run_problem(
        engine.value(), std::string(shape) + " dtype=" + GetParam().dtype);
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
    const CheckResult& visibility = expect_check(result, "visibility");
    EXPECT_EQ(visibility.verdict, Verdict::kPass);
    // Quantised keys leave out the ladder, and the report says so.
    EXPECT_EQ(
        visibility.note.find("keys are stored quantised") != std::string::npos,
        std::string(GetParam().spec).find("q8_0") != std::string::npos)
        << visibility.note;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, GgmlUnderGuard,
    testing::Values(GgmlCase{"flash_f32", "flash", "fp32"},
                    GgmlCase{"flash_f16", "flash", "fp16"},
                    GgmlCase{"flash_bf16", "flash", "bf16"},
                    GgmlCase{"flash_q8_0", "flash,kv=q8_0", "fp32"},
                    GgmlCase{"softmax_f32", "softmax", "fp32"},
                    GgmlCase{"softmax_f16", "softmax", "fp16"},
                    GgmlCase{"softmax_bf16", "softmax", "bf16"},
                    GgmlCase{"softmax_q8_0", "softmax,k=q8_0", "fp32"}),
    [](const auto& tested) { return std::string(tested.param.name); });

// With an f16 cache and fewer than 64 queries this release sums in fp16,
// where 2048 + 1 is 2048.
TEST(GgmlUnderGuard, FindsTheDecodeWhoseRowSumSticksAt2048Keys) {
  const Result<Engine> engine = open_ggml("flash,kv=f16,threads=1");
  ATTNGUARD_SKIP_WITHOUT_GGML(engine);
  const std::string line =
      "num_heads=2 seq_len_kv=8192 head_dim=64 dtype=fp16 "
      "mask=causal_bottom_right seq_len_q=";
  const ProblemResult decode =
      run_problem(engine.value(), line + "1", {"row-sum", "visibility"});
  const CheckResult& sums = expect_check(decode, "row-sum");
  ASSERT_EQ(sums.verdict, Verdict::kViolation) << findings_text(decode);
  EXPECT_EQ(sums.findings.front().observed, 0.25);
  EXPECT_EQ(expect_check(decode, "visibility").verdict, Verdict::kPass);
  const ProblemResult prefill =
      run_problem(engine.value(), line + "64", {"row-sum"});
  EXPECT_EQ(prefill.verdict, Verdict::kPass) << findings_text(prefill);
}

}  // namespace
}  // namespace attnguard
