#include "adapters/plain/plain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "guard/engine/attention_variant.h"
#include "guard/problem/random_problem.h"
#include "tests/engine/test_tensors.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

// Causal attention, dense BHSD, as one writes it in an afternoon.
void my_attention(const float* query, const float* key, const float* value,
                  float* output, std::int64_t batch, std::int64_t num_heads,
                  std::int64_t num_kv_heads, std::int64_t seq_len_q,
                  std::int64_t seq_len_kv, std::int64_t head_dim_qk,
                  std::int64_t head_dim_v, float softmax_scale) {
  for (std::int64_t bh = 0; bh < batch * num_heads; ++bh) {
    const std::int64_t b = bh / num_heads, h = bh % num_heads;
    const std::int64_t bg = b * num_kv_heads + h / (num_heads / num_kv_heads);
    const float* keys = key + bg * seq_len_kv * head_dim_qk;
    const float* values = value + bg * seq_len_kv * head_dim_v;
    for (std::int64_t i = 0; i < seq_len_q; ++i) {
      const float* q = query + (bh * seq_len_q + i) * head_dim_qk;
      float* o = output + (bh * seq_len_q + i) * head_dim_v;
      std::vector<float> weights;
      float sum = 0;
      for (std::int64_t j = 0; j <= i + seq_len_kv - seq_len_q; ++j) {
        float score = 0;
        for (std::int64_t k = 0; k < head_dim_qk; ++k)
          score += q[k] * keys[j * head_dim_qk + k];
        weights.push_back(std::exp(score * softmax_scale));
        sum += weights.back();
      }
      for (std::int64_t c = 0; c < head_dim_v; ++c) {
        o[c] = 0;
        for (std::size_t j = 0; j < weights.size(); ++j)
          o[c] += weights[j] / sum *
                  values[static_cast<std::int64_t>(j) * head_dim_v + c];
      }
    }
  }
}

// The example of plain.h.
Engine example_engine() {
  PlainOptions options;
  options.masks = {"causal_bottom_right"};
  Engine engine = plain_fp32_engine("my_attention", options, my_attention);
  return engine;
}

// An engine that claims every problem and honours strides.
Engine strided_engine(PlainOptions options) {
  options.dtypes = {Dtype::kFp64, Dtype::kFp32, Dtype::kFp16, Dtype::kBf16};
  options.any_out_dtype = true;
  options.masks = {"*"};
  options.grouped_heads = options.unequal_head_dims = options.own_lengths =
      true;
  return plain_engine("strided", options, [](const PlainArrays& a) {
    const Problem& p = *a.problem;
    const auto view = [&](const void* data, Dtype dtype, TensorRole role,
                          const Shape4& strides) {
      return TensorView{static_cast<std::byte*>(const_cast<void*>(data)), dtype,
                        p.shape(role), strides};
    };
    (void)run_variant(
        {},
        {&p, view(a.query, a.dtype, TensorRole::kQuery, a.query_strides),
         view(a.key, a.dtype, TensorRole::kKey, a.key_strides),
         view(a.value, a.dtype, TensorRole::kValue, a.value_strides),
         view(a.output, a.out_dtype, TensorRole::kOutput, a.output_strides)});
  });
}

std::string reason(const Engine& engine, const std::string& line) {
  return unsupported_reason(engine, problem_of(line));
}

TEST(PlainEngine, RunsTheExampleOfItsHeader) {
  TestTensors tensors(problem_of(
      "batch=2 num_heads=3 seq_len=20 head_dim=8 mask=causal_bottom_right"));
  EXPECT_EQ(outside_bound(tensors, example_engine()), "");
  EXPECT_EQ(example_engine().name, "my_attention");
}

TEST(PlainEngine, SaysWhyItDoesNotTakeAProblem) {
  const Engine engine = example_engine();
  const std::string fits = "seq_len=8 head_dim=4 mask=causal_bottom_right";
  EXPECT_EQ(reason(engine, fits), "");
  const std::pair<const char*, const char*> cases[] = {
      {" dtype=fp16", "dtype fp16"},
      {" out_dtype=fp16", "out_dtype"},
      {" num_heads=4 num_kv_heads=2", "num_kv_heads"},
      {" layout=bshd num_heads=2", "expects dense bhsd"},
      {" key_strides=100,100,8,1", "the key has strides 100,100,8,1"},
  };
  for (const auto& [extra, word] : cases)
    EXPECT_THAT(reason(engine, fits + extra), HasSubstr(word)) << extra;
  EXPECT_THAT(reason(engine,
                     "seq_len=8 head_dim_qk=4 head_dim_v=8 "
                     "mask=causal_bottom_right"),
              HasSubstr("head_dim_v"));
  EXPECT_THAT(
      reason(engine, "batch=2 seq_len=8,7 head_dim=4 mask=causal_bottom_right"),
      HasSubstr("unlike lengths"));
  EXPECT_THAT(reason(engine, "seq_len=8 head_dim=4"),
              HasSubstr("mask full is not one it implements "
                        "(causal_bottom_right)"));
}

TEST(PlainEngine, TakesAMaskThatAllowsTheSameKeysUnderAnotherName) {
  const Engine engine = example_engine();
  EXPECT_EQ(reason(engine, "seq_len=8 mask=causal_top_left"), "");
  EXPECT_EQ(reason(engine, "seq_len_q=1 seq_len_kv=8 mask=full"), "");
  EXPECT_NE(reason(engine, "seq_len_q=2 seq_len_kv=8 mask=causal_top_left"),
            "");
}

TEST(PlainEngine, TakesEveryParameterOfAKindNamedWithoutThem) {
  PlainOptions options;
  options.masks = {"sliding_window", "prefix_lm(prefix=3)"};
  const Engine engine = plain_fp32_engine("windowed", options, my_attention);
  EXPECT_EQ(reason(engine, "mask=sliding_window(left=3,right=0)"), "");
  EXPECT_EQ(reason(engine, "mask=sliding_window(left=9,right=1)"), "");
  EXPECT_EQ(reason(engine, "mask=prefix_lm(prefix=3)"), "");
  EXPECT_NE(reason(engine, "mask=prefix_lm(prefix=4)"), "");
  EXPECT_NE(
      reason(engine, "mask=causal_bottom_right+sliding_window(left=3,right=5)"),
      "");
}

TEST(PlainEngine, NamesAMaskTextThatMeansNothing) {
  PlainOptions options;
  options.masks = {"casual_top_left"};
  const Engine engine = plain_fp32_engine("typo", options, my_attention);
  EXPECT_THAT(reason(engine, "mask=causal_top_left"),
              HasSubstr("did you mean 'causal_top_left'"));
}

TEST(PlainEngine, KeepsAFunctionWithAFixedScaleFromOtherScales) {
  PlainOptions options;
  options.free_scale = false;
  const Engine engine = plain_fp32_engine("fixed", options, my_attention);
  EXPECT_EQ(reason(engine, "head_dim=16"), "");
  EXPECT_EQ(reason(engine, "head_dim=16 softmax_scale=0.25"), "");
  EXPECT_THAT(reason(engine, "head_dim=16 softmax_scale=0.5"),
              HasSubstr("softmax_scale"));
}

TEST(PlainEngine, RefusesOptionsThatAnFp32FunctionCannotBeTold) {
  PlainOptions strides, lengths, types;
  strides.layout = std::nullopt;
  lengths.own_lengths = true;
  types.any_out_dtype = true;
  for (const PlainOptions& options : {strides, lengths, types})
    EXPECT_THAT(
        reason(plain_fp32_engine("f", options, my_attention), "seq_len=8"),
        HasSubstr("use plain_engine"));
}

TEST(PlainEngine, AsksTheUsersOwnLimitLast) {
  PlainOptions options;
  options.unsupported = [](const Problem& problem) -> std::string {
    return problem.head_dim_qk > 128 ? "head_dim above 128" : "";
  };
  const Engine engine = plain_fp32_engine("small", options, my_attention);
  EXPECT_EQ(reason(engine, "head_dim=128"), "");
  EXPECT_EQ(reason(engine, "head_dim=129"), "head_dim above 128");
}

TEST(PlainEngine, HandsFreeStridesToAFunctionThatHonoursThem) {
  PlainOptions options;
  options.layout = std::nullopt;
  const Engine engine = strided_engine(options);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    TestTensors tensors(random_problem(seed, Variety::kShapes), seed);
    ASSERT_EQ(outside_bound(tensors, engine), "") << seed;
  }
}

TEST(PlainEngine, RepacksAnyStridesIntoEveryLayout) {
  for (Layout layout : {Layout::kBhsd, Layout::kBshd, Layout::kSbhd}) {
    PlainOptions options;
    options.layout = layout;
    options.repack = true;
    const Engine engine = strided_engine(options);
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      TestTensors tensors(random_problem(seed, Variety::kShapes), seed);
      ASSERT_EQ(outside_bound(tensors, engine), "")
          << layout_name(layout) << " seed " << seed;
    }
  }
}

TEST(PlainEngine, RepackingGivesTheFunctionDenseTensors) {
  PlainOptions options;
  options.repack = true;
  PlainArrays seen;
  const Engine engine = plain_engine(
      "spy", options, [&](const PlainArrays& arrays) { seen = arrays; });
  TestTensors tensors(
      problem_of("batch=2 num_heads=3 seq_len=5 head_dim=4 layout=sbhd"));
  tensors.run(engine);
  EXPECT_EQ(seen.query_strides, (Shape4{60, 20, 4, 1}));
  EXPECT_EQ(seen.output_strides, (Shape4{60, 20, 4, 1}));
  EXPECT_NE(seen.query, tensors.view(TensorRole::kQuery).data);
}

TEST(PlainEngine, CopiesNothingWhenTheLayoutAlreadyFits) {
  PlainOptions options;
  options.repack = true;
  PlainArrays seen;
  const Engine engine = plain_engine(
      "spy", options, [&](const PlainArrays& arrays) { seen = arrays; });
  // One head: bshd and bhsd are the same memory.
  TestTensors tensors(
      problem_of("batch=2 num_heads=1 seq_len=5 head_dim=4 layout=bshd"));
  tensors.run(engine);
  EXPECT_EQ(seen.query, tensors.view(TensorRole::kQuery).data);
  EXPECT_EQ(seen.output, tensors.view(TensorRole::kOutput).data);
}

TEST(PlainEngine, RepackingKeepsPoisonWhereTheFunctionWritesNothing) {
  PlainOptions options;
  options.repack = true;
  const Engine engine =
      plain_engine("idle", options, [](const PlainArrays&) {});
  TestTensors tensors(
      problem_of("num_heads=2 seq_len=3 head_dim=4 layout=bshd"));
  tensors.run(engine);
  const TensorView out = tensors.view(TensorRole::kOutput);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(is_poison(out.dtype, out.at(0, 1, i, 2)));
}

TEST(PlainEngine, RepackingWritesBackOnlyRowsWithinTheEntrysLength) {
  PlainOptions options;
  options.repack = options.own_lengths = true;
  const Engine engine =
      plain_engine("filler", options, [](const PlainArrays& a) {
        std::fill_n(static_cast<float*>(a.output),
                    a.batch * a.num_heads * a.seq_len_q * a.head_dim_v, 7.0f);
      });
  TestTensors tensors(problem_of(
      "batch=2 num_heads=2 seq_len_q=3,1 seq_len_kv=3 head_dim=4 layout=bshd"));
  for (double x : tensors.run(engine)) EXPECT_EQ(x, 7);
  const TensorView out = tensors.view(TensorRole::kOutput);
  EXPECT_TRUE(is_poison(out.dtype, out.at(1, 1, 1)));
  EXPECT_TRUE(is_poison(out.dtype, out.at(1, 0, 2, 3)));
}

TEST(PlainEngine, ReportsAnExceptionOfTheFunction) {
  const Engine engine = plain_engine("thrower", {}, [](const PlainArrays&) {
    throw std::runtime_error("out of tiles");
  });
  TestTensors tensors(problem_of("seq_len=3 head_dim=4"));
  const Status status = run_engine(engine, tensors.call());
  EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(status.message(), HasSubstr("out of tiles"));
}

}  // namespace
}  // namespace attnguard
