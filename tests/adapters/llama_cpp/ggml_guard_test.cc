// The guard on a real engine: every kernel and cache type of ggml passes, and
// what this release gets wrong is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/adapters/llama_cpp/open_ggml.h"
#include "tests/support/engines.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

// Under the built-in policy's settings for the engine, as the command does.
ProblemResult run_under_policy(const Engine& engine, const std::string& line) {
  RunOptions options;
  options.draw_maps = false;
  return verify_problem(engine, problem_of(line),
                        default_policy().resolve(engine.name), options);
}

struct GgmlCase {
  const char* name;
  const char* spec;
  const char* dtype;
};

void PrintTo(const GgmlCase& tested, std::ostream* to) {
  *to << tested.spec << " in " << tested.dtype;
}

class GgmlUnderGuard : public testing::TestWithParam<GgmlCase> {};

TEST_P(GgmlUnderGuard, PassesEveryCheck) {
  const Result<Engine> engine = open_ggml(GetParam().spec);
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
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
    const ProblemResult result = run_under_policy(
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
  const Result<Engine> engine = open_ggml("flash,kv=f16");
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
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

// Masked values are multiplied by a weight of 0, which NaN survives. llama.cpp
// keeps its cache free of NaN, so the built-in policy warns and no more.
TEST(GgmlUnderGuard, FindsNanOfUnusedSlotsAndThePolicyWarns) {
  const std::string line =
      "batch=2 num_heads=4 seq_len_q=65 seq_len_kv=65,40 head_dim=96 "
      "mask=prefix_lm(prefix=7) dtype=fp32";
  for (const char* spec : {"flash", "softmax"}) {
    const Result<Engine> engine = open_ggml(spec);
    ATTNGUARD_SKIP_WITHOUT("ggml", engine);
    const ProblemResult strict =
        run_problem(engine.value(), line, {"unused-slots", "unused-slots-nan"});
    EXPECT_EQ(strict.verdict, Verdict::kViolation) << findings_text(strict);
    EXPECT_EQ(expect_check(strict, "unused-slots").verdict, Verdict::kPass);
    const CheckResult& nan = expect_check(strict, "unused-slots-nan");
    ASSERT_EQ(nan.verdict, Verdict::kViolation) << findings_text(strict);
    // The second entry has unused slots, the first has none.
    for (const Finding& finding : nan.findings)
      EXPECT_EQ(finding.batch, 1) << finding.message;
    const ProblemResult warned = run_under_policy(engine.value(), line);
    EXPECT_EQ(warned.verdict, Verdict::kPass) << findings_text(warned);
    const CheckResult& warning = expect_check(warned, "unused-slots-nan");
    EXPECT_EQ(warning.verdict, Verdict::kViolation);
    EXPECT_TRUE(warning.warning_only);
  }
}

// GQA and windows beside each feature and beside several; tiles and single
// rows.
TEST_P(GgmlUnderGuard, PassesWithEveryFeature) {
  const Result<Engine> engine = open_ggml(GetParam().spec);
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  for (const char* shape :
       {"num_heads=6 num_kv_heads=2 seq_len=65 head_dim=64 softcap=4 "
        "mask=causal_bottom_right+sliding_window(left=31,right=0)",
        "num_heads=6 num_kv_heads=2 seq_len_q=33 seq_len_kv=65 head_dim=64 "
        "alibi_max_bias=8 "
        "mask=causal_bottom_right+sliding_window(left=31,right=0)",
        "num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=257 head_dim=64 "
        "alibi_max_bias=8 sinks=1,-1,0,2 mask=causal_bottom_right",
        "num_heads=6 num_kv_heads=2 seq_len=65 head_dim=64 softcap=20 "
        "sinks=1,-1,0,2,0.5,-2 "
        "mask=causal_bottom_right+sliding_window_keys(keys=9)",
        "batch=2 num_heads=2 seq_len=20 head_dim=64 mask_form=additive "
        "empty_row=any mask=causal_bottom_right+left_padding_keys(pad=0:3)",
        "batch=2 num_heads=4 num_kv_heads=1 seq_len_q=20 seq_len_kv=40 "
        "head_dim_qk=96 head_dim_v=64 value_in_key=true "
        "mask=causal_bottom_right",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1,60,5 "
        "seq_len_kv=40,61,21 head_dim=64 packed=true packed_padding=3 "
        "sinks=0 mask=causal_bottom_right",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=33,16,70 "
        "head_dim=64 block_size=16 softcap=50 mask=causal_bottom_right"}) {
    if (std::string(shape).find("value_in_key") != std::string::npos &&
        std::string(GetParam().spec).find("k=q8_0") != std::string::npos)
      continue;  // Keys and values of unlike types.
    const ProblemResult result = run_under_policy(
        engine.value(), std::string(shape) + " dtype=" + GetParam().dtype);
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  }
}

// ggml, but it is given the problem without one of its parts.
Engine without(const Engine& engine, void (*strip)(Problem& problem)) {
  Engine result = engine;
  result.name = "test:ggml without a feature";
  result.run = [run = engine.run, strip](const AttentionCall& call) {
    Problem problem = *call.problem;
    strip(problem);
    AttentionCall less = call;
    less.problem = &problem;
    return run(less);
  };
  return result;
}

TEST(GgmlUnderGuard, FindsAFeatureThatIsLeftOut) {
  struct Control {
    const char* line;
    void (*strip)(Problem& problem);
  };
  const std::string mask =
      " num_heads=4 num_kv_heads=2 head_dim=64 "
      "mask=causal_bottom_right+sliding_window(left=15,right=0)";
  for (const char* spec : {"flash", "softmax"}) {
    const Result<Engine> engine = open_ggml(spec);
    ATTNGUARD_SKIP_WITHOUT("ggml", engine);
    for (const Control& control :
         {Control{"seq_len=65 softcap=4",
                  [](Problem& p) { p.softcap.reset(); }},
          Control{"seq_len=65 alibi_max_bias=8",
                  [](Problem& p) { p.alibi_max_bias.reset(); }},
          Control{"seq_len=65 sinks=1,-1,0,2",
                  [](Problem& p) { p.sinks.clear(); }},
          Control{"seq_len_q=1 seq_len_kv=40 sinks=0 dtype=fp16",
                  [](Problem& p) { p.sinks.clear(); }},
          Control{"seq_len=65 sinks=1,-1,0,2", [](Problem& p) {
                    p.sinks = {1, 1, 1, 1};
                  }}}) {
      const std::string line = control.line + mask;
      const ProblemResult whole = run_under_policy(engine.value(), line);
      EXPECT_EQ(whole.verdict, Verdict::kPass) << findings_text(whole);
      const ProblemResult less =
          run_under_policy(without(engine.value(), control.strip), line);
      EXPECT_EQ(less.verdict, Verdict::kViolation)
          << spec << ": " << findings_text(less);
    }
  }
}

// ggml-org/llama.cpp#29034: from 64 queries on the flash kernel works in tiles
// of 64 keys and pads the last one with -inf, which the cap turns into
// -softcap. Without a mask to overwrite it, padding counts in the softmax.
TEST(GgmlUnderGuard, FindsThePaddingThatASoftcapUnmasks) {
  const Result<Engine> engine = open_ggml("flash");
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  const std::string line = "num_heads=2 head_dim=64 softcap=2 mask=full ";
  const ProblemResult padded =
      run_under_policy(engine.value(), line + "seq_len_q=64 seq_len_kv=70");
  EXPECT_EQ(padded.verdict, Verdict::kViolation) << findings_text(padded);
  for (const char* check : {"visibility", "reference"})
    EXPECT_EQ(expect_check(padded, check).verdict, Verdict::kViolation)
        << check;
  for (const char* lengths :
       {"seq_len_q=63 seq_len_kv=70", "seq_len_q=64 seq_len_kv=128"}) {
    const ProblemResult whole =
        run_under_policy(engine.value(), line + lengths);
    EXPECT_EQ(whole.verdict, Verdict::kPass) << findings_text(whole);
  }
}

}  // namespace
}  // namespace attnguard
