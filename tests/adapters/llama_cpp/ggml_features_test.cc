// Soft-cap, ALiBi, sinks, mask tensors and layouts in ggml's own kernels,
// against attention in fp64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "adapters/llama_cpp/session.h"
#include "guard/base/text.h"
#include "tests/adapters/llama_cpp/fp64_error.h"
#include "tests/adapters/llama_cpp/open_ggml.h"
#include "tests/adapters/llama_cpp/random_call.h"
#include "tests/support/problems.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

struct FeatureCase {
  const char* name;
  const char* line;
  Feature feature;

  // Makes the problem one without the feature; nullptr: the feature is a
  // matter of layout, which changes no result.
  void (*strip)(Problem& problem);
};

void no_softcap(Problem& problem) { problem.softcap.reset(); }
void no_alibi(Problem& problem) { problem.alibi_max_bias.reset(); }
void no_sinks(Problem& problem) { problem.sinks.clear(); }

// Tiles (64 queries and more) and single rows, GQA, windows, heads that are no
// power of two, one more than a tile's keys.
const FeatureCase kFeatureCases[] = {
    {"softcap_tiles",
     "num_heads=6 num_kv_heads=2 seq_len=70 head_dim=64 softcap=2 "
     "mask=causal_bottom_right+sliding_window(left=31,right=0)",
     Feature::kSoftcap, no_softcap},
    {"softcap_decode",
     "num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=600 head_dim=64 "
     "softcap=2 mask=causal_bottom_right",
     Feature::kSoftcap, no_softcap},
    {"softcap_with_scale",
     "num_heads=2 seq_len_q=9 seq_len_kv=33 head_dim=64 softcap=3 "
     "softmax_scale=0.5",
     Feature::kSoftcap, no_softcap},
    {"alibi_tiles",
     "num_heads=6 num_kv_heads=2 seq_len_q=70 seq_len_kv=130 head_dim=64 "
     "alibi_max_bias=8 mask=causal_bottom_right",
     Feature::kAlibi, no_alibi},
    {"alibi_both_ways",
     "num_heads=12 num_kv_heads=4 seq_len_q=9 seq_len_kv=33 head_dim=64 "
     "alibi_max_bias=16 mask=full",
     Feature::kAlibi, no_alibi},
    {"alibi_top_left",
     "batch=2 num_heads=3 seq_len_q=66,5 seq_len_kv=80,17 head_dim=64 "
     "alibi_max_bias=8 mask=causal_top_left",
     Feature::kAlibi, no_alibi},
    {"sinks_tiles",
     "num_heads=4 num_kv_heads=2 seq_len=70 head_dim=64 sinks=-1,0.5,2,0 "
     "mask=causal_bottom_right+sliding_window(left=7,right=0)",
     Feature::kSinks, no_sinks},
    {"sinks_decode",
     "num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=600 head_dim=64 "
     "sinks=8,7,6,5 mask=causal_bottom_right",
     Feature::kSinks, no_sinks},
    {"sink_of_zero",
     "batch=2 num_heads=3 seq_len_q=5 seq_len_kv=9,4 head_dim=64 sinks=0 "
     "mask=causal_bottom_right",
     Feature::kSinks, no_sinks},
    {"all_three",
     "num_heads=6 num_kv_heads=2 seq_len=70 head_dim=64 softcap=5 "
     "alibi_max_bias=8 sinks=1,-1,0,2,0.5,-2 "
     "mask=causal_bottom_right+sliding_window(left=40,right=0)",
     Feature::kSinks, no_sinks},
    {"mask_additive",
     "batch=2 num_heads=2 seq_len=20 head_dim=64 mask_form=additive "
     "mask=causal_bottom_right+documents(lengths=5:3:12)",
     Feature::kMaskTensor, nullptr},
    {"mask_inverted",
     "batch=2 num_heads=2 seq_len_q=70,3 seq_len_kv=70,9 head_dim=64 "
     "mask_form=inverted mask=causal_bottom_right",
     Feature::kMaskTensor, nullptr},
    {"value_in_key",
     "batch=2 num_heads=4 num_kv_heads=1 seq_len_q=66 seq_len_kv=80 "
     "head_dim_qk=96 head_dim_v=64 value_in_key=true mask=causal_bottom_right",
     Feature::kValueInKey, nullptr},
    {"packed",
     "batch=4 num_heads=4 num_kv_heads=2 seq_len=17,0,5,63 head_dim=64 "
     "packed=true packed_padding=7 layout=bshd mask=causal_bottom_right",
     Feature::kPacked, nullptr},
    {"paged",
     "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=33,16,70 "
     "head_dim=64 block_size=16 layout=bhsd mask=causal_bottom_right",
     Feature::kPaged, nullptr},
    {"packed_and_paged",
     "batch=3 num_heads=6 num_kv_heads=2 seq_len_q=1,62,5 "
     "seq_len_kv=40,63,21 head_dim=64 packed=true block_size=8 "
     "shared_prefix=16 layout=bshd softcap=4 alibi_max_bias=8 sinks=1 "
     "mask=causal_bottom_right+sliding_window_keys(keys=9)",
     Feature::kPaged, nullptr},
};

void PrintTo(const FeatureCase& tested, std::ostream* to) {
  *to << tested.line;
}

class GgmlFeature : public ::testing::TestWithParam<FeatureCase> {};

TEST_P(GgmlFeature, AgreesWithFp64WithinTheErrorItStates) {
  const auto& [name, line, feature, strip] = GetParam();
  for (const char* text :
       {"flash|fp32", "flash|fp16", "flash|bf16", "flash,kv=q8_0|fp32",
        "softmax|fp32", "softmax|fp16", "softmax|bf16"}) {
    const auto pieces = split(text, '|');
    const Result<Engine> opened = open_ggml(std::string(pieces[0]));
    ATTNGUARD_SKIP_WITHOUT("ggml", opened);
    const Engine& engine = opened.value();
    EXPECT_TRUE(engine.capabilities.has(feature)) << text;
    RandomCall tensors(
        problem_of(std::string(line) + " dtype=" + std::string(pieces[1])));
    EXPECT_EQ(unsupported_reason(engine, tensors.problem()), "") << text;
    const Status status = run_engine(engine, tensors.call());
    ASSERT_TRUE(status.ok()) << status.message();
    const Numerics numerics = numerics_of(engine, tensors.problem());
    EXPECT_LE(worst_ratio(tensors.call(), numerics), 1) << text;
    // Sums in fp16 and quantised keys have bounds that hide a good deal.
    if (strip == nullptr || numerics.accumulator == Dtype::kFp16 ||
        numerics.key_error > 0)
      continue;
    // What it computes is not attention without the feature.
    Problem without = tensors.problem();
    strip(without);
    EXPECT_GT(worst_ratio(tensors.as(without), numerics), 2) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GgmlFeature, ::testing::ValuesIn(kFeatureCases),
                         [](const auto& tested) {
                           return std::string(tested.param.name);
                         });

std::string ggml_reason(const char* engine, const char* line) {
  const Result<Engine> opened = open_ggml(engine);
  return unsupported_reason(opened.value(), problem_of(line));
}

TEST(GgmlFeatures, SayWhatTheyCannotRun) {
  const Result<Engine> engine = open_ggml("flash");
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  const char* far =
      "num_heads=2 seq_len_q=1 seq_len_kv=2050 head_dim=64 alibi_max_bias=8 "
      "mask=causal_bottom_right";
  EXPECT_THAT(ggml_reason("flash", far),
              HasSubstr("exact up to 2048; here they "
                        "reach 2049: use ggml:softmax"));
  EXPECT_EQ(ggml_reason("softmax", far), "");
  EXPECT_EQ(ggml_reason("flash",
                        "num_heads=2 seq_len_q=1 seq_len_kv=2049 head_dim=64 "
                        "alibi_max_bias=8 mask=causal_bottom_right"),
            "");
  EXPECT_THAT(ggml_reason("flash,k=f16,v=f32",
                          "head_dim_qk=96 head_dim_v=64 value_in_key=true"),
              HasSubstr("k= and v= to be the same"));
  const std::string empty =
      "seq_len_q=4 seq_len_kv=2 head_dim=64 mask=causal_bottom_right ";
  EXPECT_THAT(ggml_reason("flash", (empty + "empty_row=mean").c_str()),
              HasSubstr("gives 0 for a row with no allowed key, not mean"));
  EXPECT_THAT(ggml_reason("softmax", empty.c_str()), HasSubstr("(NaN)"));
  EXPECT_EQ(ggml_reason("softmax", (empty + "empty_row=nan").c_str()), "");
  EXPECT_EQ(ggml_reason("softmax", (empty + "empty_row=any").c_str()), "");
  EXPECT_EQ(ggml_reason("softmax", (empty + "sinks=0").c_str()), "");
}

TEST(GgmlFeatures, RowsWithNoKeyAreWhatTheProblemSays) {
  const Result<Engine> engine = open_ggml("softmax");
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  for (const char* lengths : {"seq_len_q=4 seq_len_kv=2",
                              "seq_len_q=4 "
                              "seq_len_kv=0"}) {
    const std::string line =
        std::string(lengths) + " head_dim=64 mask=causal_bottom_right ";
    RandomCall plain(problem_of(line + "empty_row=nan"));
    ASSERT_TRUE(run_engine(engine.value(), plain.call()).ok());
    EXPECT_TRUE(std::isnan(row_of(plain.call().output, 0, 0, 0)[0])) << line;
    RandomCall beside_sinks(problem_of(line + "sinks=0"));
    ASSERT_TRUE(run_engine(engine.value(), beside_sinks.call()).ok());
    EXPECT_EQ(max_abs(row_of(beside_sinks.call().output, 0, 0, 0)), 0) << line;
  }
}

// A library from before sinks has the rest.
TEST(GgmlFeatures, LeaveOutSinksThatTheLibraryHasNot) {
  const auto loaded = ggml::load_library("");
  ATTNGUARD_SKIP_WITHOUT("ggml", loaded);
  auto old = std::make_shared<ggml::Library>(*loaded.value());
  old->call.flash_attn_ext_add_sinks = nullptr;
  old->call.soft_max_add_sinks = nullptr;
  for (ggml::Kernel kernel : {ggml::Kernel::kFlash, ggml::Kernel::kSoftmax}) {
    ggml::Settings settings;
    settings.kernel = kernel;
    const auto with = ggml::Session::create(loaded.value(), settings);
    const auto without = ggml::Session::create(old, settings);
    ASSERT_TRUE(with.ok() && without.ok());
    EXPECT_THAT(with.value()->features(), ::testing::Contains(Feature::kSinks));
    EXPECT_THAT(without.value()->features(),
                ::testing::Not(::testing::Contains(Feature::kSinks)));
    EXPECT_THAT(without.value()->features(),
                ::testing::Contains(Feature::kSoftcap));
  }
}

TEST(GgmlFeatures, SoftmaxGivesItsWeights) {
  const Result<Engine> engine = open_ggml("softmax");
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  EXPECT_TRUE(engine.value().capabilities.has(Feature::kWeights));
  EXPECT_FALSE(open_ggml("flash").value().capabilities.has(Feature::kWeights));
  for (const char* more : {"", " packed=true"}) {
    RandomCall tensors(problem_of(
        std::string("batch=2 num_heads=4 num_kv_heads=2 seq_len_q=5,3 "
                    "seq_len_kv=9,6 head_dim=64 sinks=1 "
                    "mask=causal_bottom_right") +
        more));
    const Problem& p = tensors.problem();
    const TensorView weights = tensors.ask_for_weights();
    ASSERT_TRUE(run_engine(engine.value(), tensors.call()).ok());
    const Inputs inputs{p, Decoded(tensors.call().query),
                        Decoded(tensors.call().key),
                        Decoded(tensors.call().value)};
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 4; ++h)
        for (std::int64_t q = 0; q < p.len_q(b); ++q) {
          const Weights expected = weights_of(inputs, b, h, q);
          std::vector<double> seen = row_of(weights, b, h, q);
          for (std::size_t i = 0; i < expected.keys.size(); ++i) {
            double& weight = seen[expected.keys[i]];
            EXPECT_NEAR(weight, expected.weight[i], 1e-6);
            weight = 0;
          }
          EXPECT_EQ(max_abs(seen), 0) << "weight of a key not allowed";
        }
  }
}

}  // namespace
}  // namespace attnguard
