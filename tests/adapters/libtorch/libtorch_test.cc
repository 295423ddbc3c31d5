// The guard on LibTorch: what its attention gets right, and what it does when
// is_causal is used for the other alignment.
#include "adapters/libtorch/libtorch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if ATTNGUARD_WITH_LIBTORCH
#include "adapters/libtorch/live_call.h"
#endif
#include "guard/diagnosis/match.h"
#include "guard/pipeline.h"
#include "tests/support/engines.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

Result<Engine> open_engine(const std::string& text) {
#if ATTNGUARD_WITH_LIBTORCH
  std::string adapter;
  const Result<EngineSpec> spec =
      parse_engine_spec("libtorch:" + text, adapter);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return kLibTorchAdapter.open(spec.value());
#else
  return Status(StatusCode::kNotFound,
                "libtorch:" + text +
                    ": built without it; install libtorch-dev "
                    "and configure again");
#endif
}

Problem parse(const std::string& line) {
  const Result<Problem> problem = Problem::parse(line);
  EXPECT_TRUE(problem.ok()) << line << ": " << problem.status().message();
  return problem.value();
}

// With the built-in policy's settings for the engine.
ProblemResult verify_line(const Engine& engine, const std::string& line) {
  return verify_problem(engine, parse(line),
                        default_policy().resolve(engine.name));
}

// With a dtype behind each.
const std::vector<std::string> kLines = {
    "batch=2 num_heads=6 num_kv_heads=2 seq_len=31 head_dim=16 "
    "mask=causal_top_left",
    "num_heads=4 num_kv_heads=2 seq_len_q=5 seq_len_kv=70 head_dim=64 "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len_q=9 seq_len_kv=20 head_dim=16 mask=causal_top_left",
    "batch=3 num_heads=2 seq_len_q=17,9,1 seq_len_kv=64,33,5 head_dim=40 "
    "mask=full layout=bshd",
    "batch=3 num_heads=2 seq_len=17,9,1 head_dim=16 layout=sbhd "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len=40 head_dim=32 "
    "mask=causal_bottom_right+sliding_window(left=7,right=0)",
    "batch=2 num_heads=2 seq_len_q=9 seq_len_kv=12 head_dim=16 "
    "mask=causal_bottom_right+left_padding_keys(pad=0:3) mask_form=boolean "
    "empty_row=any",
    "num_heads=2 seq_len=24 head_dim=16 mask=causal_bottom_right "
    "mask_form=additive",
    "batch=3 num_heads=2 seq_len_q=3,0,5 seq_len_kv=9,4,20 head_dim=16 "
    "mask=causal_bottom_right packed=true packed_padding=3 block_size=4",
    "batch=2 num_heads=2 seq_len=4,11 head_dim=16 layout=bshd packed=true "
    "mask=causal_top_left",
    "num_heads=2 num_kv_heads=1 seq_len=20 head_dim_qk=24 head_dim_v=16 "
    "mask=full value_in_key=true",
    "num_heads=2 seq_len=17 head_dim=64 softmax_scale=0.5 "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len_q=9 seq_len_kv=4 head_dim=16 "
    "mask=causal_bottom_right empty_row=any"};

struct Case {
  const char* name;
  const char* engine;
  const char* dtype;
};

void PrintTo(const Case& tested, std::ostream* to) {
  *to << tested.engine << " in " << tested.dtype;
}

class LibTorch : public testing::TestWithParam<Case> {};

TEST_P(LibTorch, PassesEveryCheck) {
  const Result<Engine> engine = open_engine(GetParam().engine);
  ATTNGUARD_SKIP_WITHOUT("libtorch", engine);
  for (std::string line : kLines) {
    line += std::string(" dtype=") + GetParam().dtype;
    const ProblemResult result = verify_line(engine.value(), line);
    EXPECT_EQ(result.verdict, Verdict::kPass)
        << line << ": " << result.note << findings_text(result);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Engines, LibTorch,
    testing::Values(Case{"fp32", "sdpa,threads=1", "fp32"},
                    Case{"fp64", "sdpa,threads=1", "fp64"},
                    Case{"bf16", "sdpa,threads=1", "bf16"},
                    Case{"fp32_two_threads", "sdpa,threads=2", "fp32"},
                    Case{"fp32_mask_tensor", "sdpa,threads=1,causal=tensor",
                         "fp32"},
                    Case{"fp32_weights", "sdpa_weights,threads=1", "fp32"},
                    Case{"fp64_weights", "sdpa_weights,threads=1", "fp64"},
                    Case{"bf16_weights", "sdpa_weights,threads=1", "bf16"}),
    [](const auto& tested) { return std::string(tested.param.name); });

constexpr const char* kSquare =
    "num_heads=2 seq_len=17 head_dim=16 mask=causal_top_left";

TEST(LibTorchWeights, AreJudgedOnlyWhereTheyAreAskedFor) {
  const Result<Engine> without = open_engine("sdpa,threads=1");
  ATTNGUARD_SKIP_WITHOUT("libtorch", without);
  const Result<Engine> with = open_engine("sdpa_weights,threads=1");
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_FALSE(without.value().capabilities.has(Feature::kWeights));
  EXPECT_TRUE(with.value().capabilities.has(Feature::kWeights));
  const ProblemResult result = verify_line(with.value(), kSquare);
  EXPECT_EQ(expect_check(result, "weights").verdict, Verdict::kPass)
      << findings_text(result);
}

// is_causal lets the first query see the first key, whatever the lengths.
TEST(LibTorchControl, IsCausalForBottomRightMissesKeys) {
  const Result<Engine> engine = open_engine("sdpa,threads=1,causal=flag");
  ATTNGUARD_SKIP_WITHOUT("libtorch", engine);
  const ProblemResult result =
      verify_line(engine.value(),
                  "num_heads=2 seq_len_q=3 seq_len_kv=8 head_dim=16 "
                  "mask=causal_bottom_right");
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_THAT(
      expect_check(result, "visibility").findings,
      Contains(AllOf(Field(&Finding::kind, FindingKind::kMiss),
                     Field(&Finding::query, 0), Field(&Finding::key, 5))));
  ASSERT_TRUE(result.diagnosis.has_value());
  ASSERT_FALSE(result.diagnosis->explanations.empty());
  EXPECT_EQ(result.diagnosis->explanations.front().id,
            "top-left-for-bottom-right");
}

// More queries than keys: is_causal shows the first queries keys that the
// bottom-right mask hides from them.
TEST(LibTorchControl, IsCausalForBottomRightLeaksKeys) {
  const Result<Engine> engine = open_engine("sdpa,threads=1,causal=flag");
  ATTNGUARD_SKIP_WITHOUT("libtorch", engine);
  const ProblemResult result = verify_line(
      engine.value(),
      "seq_len_q=9 seq_len_kv=6 head_dim=16 mask=causal_bottom_right "
      "empty_row=any");
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_THAT(expect_check(result, "visibility").findings,
              Contains(AllOf(Field(&Finding::kind, FindingKind::kLeak),
                             Field(&Finding::query, 3))));
}

// 0 * NaN in what is masked: the built-in policy makes it a warning.
TEST(LibTorchUnused, SpreadsNanFromUnusedSlots) {
  const Result<Engine> engine = open_engine("sdpa,threads=1");
  ATTNGUARD_SKIP_WITHOUT("libtorch", engine);
  const ProblemResult result =
      verify_line(engine.value(),
                  "batch=2 seq_len_q=4 seq_len_kv=9,5 head_dim=16 mask=full");
  EXPECT_EQ(result.verdict, Verdict::kPass);
  const CheckResult& check = expect_check(result, "unused-slots-nan");
  EXPECT_EQ(check.verdict, Verdict::kViolation);
  EXPECT_TRUE(check.warning_only);
}

#if ATTNGUARD_WITH_LIBTORCH

// The rule for rows without a key is what this release was seen to do.
TEST(LibTorchEmptyRows, KeepTheRuleOfTheRelease) {
  const Result<Engine> engine = open_engine("sdpa,threads=1");
  ATTNGUARD_SKIP_WITHOUT("libtorch", engine);
  const std::string line =
      "num_heads=2 seq_len_q=9 seq_len_kv=4 head_dim=16 "
      "mask=causal_bottom_right empty_row=";
  int kept = 0;
  for (const char* rule : {"zero", "nan", "mean"}) {
    const std::string reason =
        unsupported_reason(engine.value(), parse(line + rule));
    if (!reason.empty()) {
      EXPECT_THAT(reason, HasSubstr("for a row with no allowed key"));
      continue;
    }
    ++kept;
    const ProblemResult result = verify_line(engine.value(), line + rule);
    EXPECT_EQ(result.verdict, Verdict::kPass)
        << line << rule << findings_text(result);
  }
  EXPECT_EQ(kept, 1);
}

TEST(LibTorchUnsupported, SaysWhy) {
  const Result<Engine> engine = open_engine("sdpa,threads=1");
  ATTNGUARD_SKIP_WITHOUT("libtorch", engine);
  const auto reason = [&](const std::string& line) {
    return unsupported_reason(engine.value(), parse(line));
  };
  EXPECT_THAT(reason("mask_form=inverted mask=causal_top_left"),
              HasSubstr("attn_mask is boolean (true: may attend) or additive"));
  EXPECT_THAT(reason("dtype=bf16 out_dtype=fp32"), HasSubstr("inputs' type"));
  EXPECT_THAT(reason("softcap=5"), HasSubstr("softcap is not supported"));
  if (engine.value().description.find("LibTorch 1.13") == std::string::npos)
    return;
  EXPECT_THAT(
      reason("dtype=fp16"),
      AllOf(HasSubstr("LibTorch 1.13"), HasSubstr("not implemented for 'Half'"),
            Not(HasSubstr("\n"))));
  EXPECT_THAT(reason("softmax_scale=0.3"), HasSubstr("no scale argument"));
  EXPECT_EQ(reason("softmax_scale=0.5"), "");
}

struct BadSpec {
  const char* spec;
  const char* message;
};

TEST(LibTorchSpec, NamesWhatIsWrong) {
  for (const BadSpec& bad :
       {BadSpec{"sdp", "no engine 'sdp'; did you mean 'sdpa'?"},
        BadSpec{"sdpa,thread=2",
                "unknown option 'thread'; did you mean 'threads'?"},
        BadSpec{"sdpa,threads=0", "threads= expects 1 to 512, not '0'"},
        BadSpec{"sdpa,threads=", "threads= expects 1 to 512, not ''"},
        BadSpec{"sdpa,causal=flags",
                "causal= is auto, flag or tensor, not 'flags'"}}) {
    const Result<Engine> engine = open_engine(bad.spec);
    ASSERT_FALSE(engine.ok()) << bad.spec;
    EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(engine.status().message(), HasSubstr(bad.message));
  }
}

TEST(LibTorchSpec, AModuleThatIsNoneIsNotLoaded) {
  for (const BadSpec& bad :
       {BadSpec{"/nowhere/attnguard_libtorch.so", "there is no such file"},
        BadSpec{ATTNGUARD_TEST_DATA "/ci/golden/selftest.txt",
                "cannot load"}}) {
    const Result<Engine> engine =
        open_engine("sdpa,path=" + std::string(bad.spec));
    ASSERT_FALSE(engine.ok()) << bad.spec;
    EXPECT_EQ(engine.status().code(), StatusCode::kNotFound);
    EXPECT_THAT(engine.status().message(),
                AllOf(HasSubstr(bad.message), HasSubstr("libtorch-dev")));
  }
}

// --- masks of calls that the live hook sees --------------------------------

libtorch::Tensor tensor_of(const void* data, libtorch::Element element,
                           const Shape4& shape) {
  libtorch::Tensor tensor{data, element, {}, {}};
  const Shape4 strides = contiguous_strides(shape);
  for (std::size_t i = 0; i < 4; ++i) {
    tensor.shape[i] = shape[i];
    tensor.strides[i] = strides[i];
  }
  return tensor;
}

// Why a call with this mask, and 4 batches of 2 heads, 3 queries and keys, is
// not judged. The mask is no longer than its shape says.
std::string declined_for(const Shape4& mask_shape) {
  const std::vector<float> values(4 * 2 * 3 * 8);
  const std::vector<char> mask(
      static_cast<std::size_t>(mask_shape[0] * mask_shape[1] * mask_shape[2] *
                               mask_shape[3]),
      1);
  libtorch::SeenCall seen{};
  seen.query = seen.key = seen.value = seen.output =
      tensor_of(values.data(), libtorch::Element::kFp32, {4, 2, 3, 8});
  seen.mask = tensor_of(mask.data(), libtorch::Element::kBool, mask_shape);
  libtorch::LiveCall call;
  return std::string(call.build(seen, {}));
}

TEST(LibTorchLiveCall, TakesOnlyMasksThatFit) {
  EXPECT_EQ(declined_for({1, 1, 3, 3}), "");
  EXPECT_EQ(declined_for({4, 1, 3, 3}), "");
  EXPECT_EQ(declined_for({4, 1, 1, 3}), "");
  EXPECT_EQ(declined_for({2, 1, 3, 3}), "a mask of another shape");
  EXPECT_EQ(declined_for({1, 2, 3, 3}), "a mask of its own for each head");
}

#endif  // ATTNGUARD_WITH_LIBTORCH

}  // namespace
}  // namespace attnguard
