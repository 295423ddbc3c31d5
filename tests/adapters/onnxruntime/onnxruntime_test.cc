// The guard on ONNX Runtime: what 1.30.0 gets right, and what 1.26.0 got wrong
// (onnxruntime issues 29020 and 28904, mended by its PR 28958).
#include "adapters/onnxruntime/onnxruntime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/diagnosis/match.h"
#include "guard/pipeline.h"
#include "tests/support/engines.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

Result<Engine> open_engine(const std::string& text) {
  std::string adapter;
  const Result<EngineSpec> spec =
      parse_engine_spec("onnxruntime:" + text, adapter);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return kOnnxRuntimeAdapter.open(spec.value());
}

Result<Engine> open_release(const std::string& kernel,
                            const std::string& version,
                            const std::string& more = "") {
  return open_engine(kernel + ",threads=1,version=" + version + more);
}

// With the built-in policy's settings for the engine.
ProblemResult verify_line(const Engine& engine, const std::string& line) {
  const Result<Problem> problem = Problem::parse(line);
  EXPECT_TRUE(problem.ok()) << problem.status().message();
  return verify_problem(engine, problem.value(),
                        default_policy().resolve(engine.name));
}

struct OnnxRuntimeCase {
  const char* name;
  const char* kernel;
  const char* more;
  std::vector<const char*> lines;
};

void PrintTo(const OnnxRuntimeCase& tested, std::ostream* to) {
  *to << tested.kernel << tested.more << " on " << tested.lines.size()
      << " problems";
}

class OnnxRuntime130 : public testing::TestWithParam<OnnxRuntimeCase> {};

TEST_P(OnnxRuntime130, PassesEveryCheck) {
  const Result<Engine> engine =
      open_release(GetParam().kernel, "1.30.0", GetParam().more);
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  for (const char* line : GetParam().lines) {
    const ProblemResult result = verify_line(engine.value(), line);
    EXPECT_EQ(result.verdict, Verdict::kPass)
        << line << ": " << result.note << findings_text(result);
  }
}

const std::vector<const char*> kAttentionLines = {
    "batch=2 num_heads=6 num_kv_heads=2 seq_len=33 head_dim=16 "
    "mask=causal_top_left",
    "num_heads=4 num_kv_heads=2 seq_len_q=5 seq_len_kv=70 head_dim=64 "
    "mask=causal_bottom_right dtype=fp16",
    "batch=3 num_heads=2 seq_len_q=17,9,1 seq_len_kv=64,33,5 head_dim=40 "
    "mask=full layout=bshd",
    "batch=2 num_heads=2 seq_len_q=4 seq_len_kv=24,17 head_dim=16 "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len=40 head_dim=32 softcap=5 "
    "mask=causal_bottom_right+sliding_window(left=7,right=0)",
    "num_heads=2 seq_len_q=9 seq_len_kv=4 head_dim=16 "
    "mask=causal_bottom_right mask_form=boolean",
    "num_heads=2 seq_len=24 head_dim=16 mask=causal_bottom_right "
    "mask_form=additive dtype=fp16",
    "batch=3 num_heads=2 seq_len_q=3,0,5 seq_len_kv=9,4,20 head_dim=16 "
    "mask=causal_bottom_right packed=true packed_padding=3 block_size=4",
    "num_heads=2 seq_len=20 head_dim_qk=24 head_dim_v=16 mask=full "
    "value_in_key=true"};

INSTANTIATE_TEST_SUITE_P(
    Kernels, OnnxRuntime130,
    testing::Values(
        OnnxRuntimeCase{"attention_23", "attention", "", kAttentionLines},
        OnnxRuntimeCase{"attention_24", "attention", ",opset=24",
                        kAttentionLines},
        OnnxRuntimeCase{
            "multi_head_attention",
            "multi_head_attention",
            "",
            {"batch=2 num_heads=4 seq_len=33 head_dim=16 "
             "mask=causal_bottom_right",
             "batch=3 num_heads=2 seq_len_q=17 seq_len_kv=64 "
             "head_dim_qk=40 head_dim_v=24 mask=full",
             "num_heads=2 seq_len_q=7 seq_len_kv=40 head_dim=16 "
             "mask=causal_bottom_right+sliding_window(left=9,right=0)"}},
        OnnxRuntimeCase{
            "group_query_attention",
            "group_query_attention",
            "",
            {"batch=2 num_heads=6 num_kv_heads=2 seq_len=33 head_dim=16 "
             "mask=causal_bottom_right",
             "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1 "
             "seq_len_kv=64,33,5 head_dim=64 mask=causal_bottom_right "
             "dtype=fp16",
             "num_heads=4 num_kv_heads=1 seq_len_q=7 seq_len_kv=40 "
             "head_dim=32 "
             "mask=causal_bottom_right+sliding_window_keys(keys=9)",
             "num_heads=2 seq_len_q=5 seq_len_kv=20 head_dim=16 softcap=5 "
             "sinks=0 mask=causal_bottom_right"}}),
    [](const auto& tested) { return std::string(tested.param.name); });

// is_causal is aligned top-left without a past. 1.26.0 showed a single query
// all keys.
constexpr const char* kOneQuery =
    "num_heads=2 seq_len_q=1 seq_len_kv=6 head_dim=16 mask=causal_top_left";

TEST(OnnxRuntime126, LeaksEveryKeyToASingleQuery) {
  const Result<Engine> engine = open_release("attention", "1.26.0");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  const ProblemResult result = verify_line(engine.value(), kOneQuery);
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_THAT(expect_check(result, "visibility").findings,
              Contains(testing::AllOf(Field(&Finding::kind, FindingKind::kLeak),
                                      Field(&Finding::key, 5))));
  ASSERT_TRUE(result.diagnosis.has_value());
  ASSERT_FALSE(result.diagnosis->explanations.empty());
  EXPECT_EQ(result.diagnosis->explanations.front().id,
            "bottom-right-for-top-left");
  ASSERT_TRUE(result.map.has_value());
}

// With nonpad_kv_seqlen the last query stands at the end of each sequence.
// 1.26.0 aligned the first ones.
constexpr const char* kLengthsProblem =
    "batch=2 num_heads=2 seq_len_q=2 seq_len_kv=6,5 head_dim=16 "
    "mask=causal_bottom_right";

TEST(OnnxRuntime126, MissesKeysWhereLengthsAreGiven) {
  const Result<Engine> engine =
      open_release("attention", "1.26.0", ",opset=24");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  const ProblemResult result = verify_line(engine.value(), kLengthsProblem);
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_THAT(
      expect_check(result, "visibility").findings,
      Contains(testing::AllOf(
          Field(&Finding::kind, FindingKind::kMiss), Field(&Finding::batch, 0),
          Field(&Finding::query, 0), Field(&Finding::key, 4))));
  ASSERT_TRUE(result.diagnosis.has_value());
  ASSERT_FALSE(result.diagnosis->explanations.empty());
  // Aligned top-left for two queries, and bottom-right for one, as above.
  const Explanation& best = result.diagnosis->explanations.front();
  EXPECT_EQ(best.id, "chunk-aligned-top-left");
  EXPECT_TRUE(best.reproduces_all);
  EXPECT_THAT(best.told_apart, HasSubstr("unused-slots-nan"));
}

// A boolean mask that leaves a row nothing: 1.26.0 gave the mean of what is
// masked.
constexpr const char* kNothingAllowed =
    "num_heads=2 seq_len_q=9 seq_len_kv=4 head_dim=16 "
    "mask=causal_bottom_right mask_form=boolean";

TEST(OnnxRuntime126, GivesTheMeanOfMaskedValues) {
  const Result<Engine> engine = open_release("attention", "1.26.0");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  const ProblemResult result = verify_line(engine.value(), kNothingAllowed);
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_EQ(expect_check(result, "empty-row").verdict, Verdict::kViolation);
  ASSERT_TRUE(result.diagnosis.has_value());
  ASSERT_FALSE(result.diagnosis->explanations.empty());
  EXPECT_EQ(result.diagnosis->explanations.front().id, "empty-row-mean");
  EXPECT_THAT(result.diagnosis->explanations.front().reports,
              Contains("microsoft/onnxruntime#28904"));
}

// 0 * NaN in what is masked: the built-in policy makes it a warning.
TEST(OnnxRuntime130Unused, SpreadsNanFromUnusedSlots) {
  const Result<Engine> engine = open_release("attention", "1.30.0");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  const ProblemResult result =
      verify_line(engine.value(),
                  "batch=2 seq_len_q=4 seq_len_kv=9,5 head_dim=16 mask=full");
  EXPECT_EQ(result.verdict, Verdict::kPass);
  const CheckResult& check = expect_check(result, "unused-slots-nan");
  EXPECT_EQ(check.verdict, Verdict::kViolation);
  EXPECT_TRUE(check.warning_only);
}

// key_padding_mask adds mask_filter_value, -10000 unless the model says
// otherwise, and a stale key may well score more than that.
TEST(OnnxRuntime130Unused, PaddedKeysOfMultiHeadAttentionCanWin) {
  const Result<Engine> engine = open_release("multi_head_attention", "1.30.0");
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  const ProblemResult result = verify_line(
      engine.value(),
      "batch=3 num_heads=2 seq_len_q=17 seq_len_kv=64,33,5 head_dim=40 "
      "mask=full");
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_EQ(expect_check(result, "visibility").verdict, Verdict::kPass);
  EXPECT_EQ(expect_check(result, "unused-slots").verdict, Verdict::kViolation);
  ASSERT_TRUE(result.diagnosis.has_value());
  ASSERT_FALSE(result.diagnosis->explanations.empty());
  EXPECT_EQ(result.diagnosis->explanations.front().id,
            "padding-minus-ten-thousand");
}

struct BadSpec {
  const char* spec;
  const char* message;
};

TEST(OnnxRuntimeSpec, NamesWhatIsWrong) {
  for (const BadSpec& bad :
       {BadSpec{"attentio", "no engine 'attentio'; did you mean 'attention'?"},
        BadSpec{"attention,opse=23",
                "unknown option 'opse'; did you mean 'opset'?"},
        BadSpec{"attention,opset=22",
                "opset= of attention is 23 or 24, not '22'"},
        BadSpec{"attention,threads=0", "threads= expects 1 to 512, not '0'"},
        BadSpec{"attention,version=9.9.9", "version=9.9.9 is not in "},
        BadSpec{"attention,path=/dev", "no libonnxruntime.so in '/dev'"},
        BadSpec{"attention,path=/dev,version=1.30.0",
                "path= and version= both name a library"}}) {
    const Result<Engine> engine = open_engine(bad.spec);
    ASSERT_FALSE(engine.ok()) << bad.spec;
    EXPECT_THAT(engine.status().message(), HasSubstr(bad.message));
  }
}

TEST(OnnxRuntimeSpec, AFileThatIsNoLibraryIsNotLoaded) {
  const Result<Engine> engine = open_engine(
      "attention,path=" ATTNGUARD_TEST_DATA "/ci/golden/selftest.txt");
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(engine.status().message(), HasSubstr("cannot load"));
}

}  // namespace
}  // namespace attnguard
