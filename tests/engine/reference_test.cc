#include "guard/engine/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "guard/engine/attention_variant.h"
#include "tests/engine/test_tensors.h"

namespace attnguard {
namespace {

// Two keys with scores 0 and ln 3, so weights 1/4 and 3/4; values 0 and 8 in
// channel 0, -4 and 4 in channel 1.
TestTensors two_keys(const std::string& more = "") {
  TestTensors tensors(problem_of(
      "seq_len_q=2 seq_len_kv=2 head_dim_qk=2 head_dim_v=2 dtype=fp64 "
      "softmax_scale=0.5 " +
      more));
  tensors.fill(TensorRole::kQuery, [](auto, auto, auto, std::int64_t c) {
    return c == 0 ? 2.0 : -1.0;
  });
  tensors.fill(TensorRole::kKey,
               [](auto, auto, std::int64_t j, std::int64_t c) {
                 if (j == 0) return c == 0 ? 1.0 : 2.0;  // 0.5 * (2 - 2) = 0
                 return c == 0 ? std::log(3.0) : 0.0;    // 0.5 * 2 ln 3
               });
  tensors.fill(TensorRole::kValue,
               [](auto, auto, std::int64_t j, std::int64_t c) {
                 return c == 0 ? 8.0 * static_cast<double>(j)
                               : -4.0 + 8.0 * static_cast<double>(j);
               });
  return tensors;
}

TEST(ReferenceRow, MatchesTwoKeysByHand) {
  TestTensors tensors = two_keys();
  ReferenceRow row;
  reference_row(tensors.inputs(), 0, 0, 0, row);
  EXPECT_EQ(row.num_keys, 2);
  EXPECT_NEAR(row.output[0], 6, 1e-14);
  EXPECT_NEAR(row.output[1], 2, 1e-14);
  EXPECT_NEAR(row.weighted_abs[0], 6, 1e-14);
  EXPECT_NEAR(row.weighted_abs[1], 4, 1e-14);
  EXPECT_NEAR(row.spread[0], 0.25 * 6 + 0.75 * 2, 1e-14);
  EXPECT_NEAR(row.spread[1], 0.25 * 6 + 0.75 * 2, 1e-14);
  EXPECT_EQ(row.total_abs[0], 8);
  EXPECT_EQ(row.total_abs[1], 8);
  EXPECT_NEAR(row.score_magnitude, 4, 1e-14);  // |2 * 1| + |-1 * 2|
  EXPECT_NEAR(row.max_abs_score, std::log(3.0), 1e-14);
  EXPECT_NEAR(row.key_block_magnitude, 2 * 3, 1e-14);
  EXPECT_NEAR(row.value_block_magnitude, 0.25 * 4 + 0.75 * 8, 1e-14);
}

TEST(ReferenceRow, SeesOnlyTheAllowedKeys) {
  TestTensors tensors = two_keys("mask=causal_top_left");
  ReferenceRow row;
  reference_row(tensors.inputs(), 0, 0, 0, row);
  EXPECT_EQ(row.num_keys, 1);
  EXPECT_EQ(row.output, (std::vector<double>{0, -4}));
  EXPECT_EQ(row.spread, (std::vector<double>{0, 0}));
  reference_row(tensors.inputs(), 0, 0, 1, row);
  EXPECT_EQ(row.num_keys, 2);
  EXPECT_NEAR(row.output[0], 6, 1e-14);
}

TEST(ReferenceRow, ForgetsTheRowBefore) {
  TestTensors wide(problem_of("seq_len=6 head_dim=8"));
  TestTensors narrow = two_keys();
  ReferenceRow row, fresh;
  reference_row(wide.inputs(), 0, 0, 3, row);
  reference_row(narrow.inputs(), 0, 0, 0, row);
  reference_row(narrow.inputs(), 0, 0, 0, fresh);
  EXPECT_EQ(row.output, fresh.output);
  EXPECT_EQ(row.spread, fresh.spread);
  EXPECT_EQ(row.weighted_abs, fresh.weighted_abs);
  EXPECT_EQ(row.total_abs, fresh.total_abs);
  EXPECT_EQ(row.max_abs_score, fresh.max_abs_score);
  EXPECT_EQ(row.key_block_magnitude, fresh.key_block_magnitude);
}

TEST(ReferenceRow, IsZeroWithoutAllowedKeys) {
  TestTensors tensors(problem_of(
      "seq_len_q=3 seq_len_kv=1 head_dim=4 mask=causal_bottom_right"));
  ReferenceRow row;
  reference_row(tensors.inputs(), 0, 0, 0, row);
  EXPECT_EQ(row.num_keys, 0);
  EXPECT_EQ(row.output, std::vector<double>(4, 0.0));
  EXPECT_EQ(reference_bound(tensors.problem(), {}, row, 2), 0);
}

TEST(ReferenceRow, ReadsTheGroupsKvHead) {
  TestTensors tensors(problem_of(
      "num_heads=6 num_kv_heads=2 seq_len_q=1 seq_len_kv=1 head_dim=4"));
  ReferenceRow row;
  for (std::int64_t h = 0; h < 6; ++h) {
    double value = 0;
    tensors.view(TensorRole::kValue).load_row(0, h / 3, 0, 2, 1, &value);
    reference_row(tensors.inputs(), 0, h, 0, row);
    EXPECT_EQ(row.output[2], value) << h;
  }
}

TEST(ReferenceRow, IsTheSameFromDecodedInputs) {
  for (const char* line :
       {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=5 seq_len_kv=9,3 "
        "head_dim=8 dtype=bf16 layout=sbhd mask=causal_bottom_right",
        "seq_len=5 head_dim=8 dtype=fp64 key_strides=99,99,17,2"}) {
    TestTensors tensors(problem_of(line));
    const DecodedInputs decoded(tensors.inputs());
    ReferenceRow direct, fast;
    const Problem& problem = tensors.problem();
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        for (std::int64_t i = 0; i < 5; ++i) {
          reference_row(tensors.inputs(), b, h, i, direct);
          reference_row(decoded.inputs(), b, h, i, fast);
          EXPECT_EQ(direct.output, fast.output);
          EXPECT_EQ(direct.spread, fast.spread);
        }
  }
}

TEST(ReferenceEngine, WritesTheReferenceRows) {
  TestTensors tensors(problem_of(
      "batch=2 num_heads=2 seq_len_q=7,2 seq_len_kv=9 head_dim=8 dtype=fp64 "
      "mask=causal_bottom_right"));
  tensors.run(reference_engine());
  ReferenceRow row;
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < tensors.problem().len_q(b); ++i) {
      reference_row(tensors.inputs(), b, 1, i, row);
      EXPECT_EQ(tensors.output(b, 1, i, 5), row.output[5]);
    }
  EXPECT_EQ(reference_engine().name, "builtin:reference");
}

TEST(ReferenceEngine, KeepsHugeScoresFinite) {
  TestTensors tensors(problem_of("seq_len=3 head_dim=1 dtype=fp64"));
  tensors.fill(TensorRole::kQuery, [](auto...) { return 1e5; });
  tensors.fill(TensorRole::kKey, [](auto, auto, std::int64_t j, auto) {
    return 10.0 * static_cast<double>(j);
  });
  tensors.run(reference_engine());
  double last = 0;
  tensors.view(TensorRole::kValue).load_row(0, 0, 2, 0, 1, &last);
  EXPECT_EQ(tensors.output(0, 0, 0), last);
}

// The bound.

ReferenceRow row_by_hand() {
  ReferenceRow row;
  row.num_keys = 4;
  row.output = {0.5};
  row.weighted_abs = {2};
  row.spread = {3};
  row.total_abs = {7};
  row.score_magnitude = 10;
  row.max_abs_score = 6;
  row.key_block_magnitude = 20;
  row.value_block_magnitude = 5;
  return row;
}

TEST(ReferenceBound, MatchesItsFormulaByHand) {
  const Problem problem = problem_of("head_dim=16 softmax_scale=0.5");
  const double u = 0x1p-24;
  const double e_s = 0.5 * 5 * 4 * u * 10;
  const double e_exp = u * (4 * 6 + 4);
  EXPECT_NEAR(reference_bound(problem, {}, row_by_hand(), 0),
              2 * (e_s + e_exp) * 3 + u * 2 + 5 * 2 * u * 2 + u * 0.5, 1e-9);
}

TEST(ReferenceBound, AddsEveryTermOfTheNumerics) {
  const Problem problem = problem_of("head_dim=16 softmax_scale=0.5");
  const ReferenceRow row = row_by_hand();
  const double plain = reference_bound(problem, {}, row, 0);
  Numerics numerics;
  numerics.value_error = 0.01;
  EXPECT_NEAR(reference_bound(problem, numerics, row, 0) - plain, 0.01 * 5,
              1e-12);
  numerics = {};
  numerics.probability = Dtype::kBf16;
  EXPECT_NEAR(reference_bound(problem, numerics, row, 0) - plain, 0x1p-8 * 2,
              1e-6);
  numerics = {};
  numerics.key_error = 1e-4;  // e_s grows by 0.5 * 1e-4 * 20
  EXPECT_NEAR(reference_bound(problem, numerics, row, 0) - plain,
              std::expm1(2e-3) * 3, 1e-6);
  numerics = {};
  numerics.score = Dtype::kFp16;  // e_s grows by 2^-11 * 6
  EXPECT_NEAR(reference_bound(problem, numerics, row, 0) - plain,
              std::expm1(2 * 0x1p-11 * 6) * 3, 1e-6);
  Problem half = problem;
  half.out_dtype = Dtype::kFp16;
  EXPECT_NEAR(reference_bound(half, {}, row, 0) - plain, 0x1p-11 * 0.5, 1e-7);
}

TEST(ReferenceBound, ShrinksToTheOutputsRoundingForFp64Sums) {
  const Problem problem = problem_of("head_dim=16 softmax_scale=0.5");
  const double bound =
      reference_bound(problem, fp64_numerics(problem), row_by_hand(), 0);
  EXPECT_NEAR(bound, 0x1p-24 * 0.5, 1e-12);
}

TEST(ReferenceBound, StaysANumberWhenScoreErrorsOverflow) {
  Numerics numerics;
  numerics.key_error = 1e6;
  ReferenceRow row = row_by_hand();
  row.spread = {0};
  row.mass = 1;
  row.weights = {0, 1};
  const Problem problem = problem_of("head_dim=16");
  EXPECT_LT(reference_bound(problem, numerics, row, 0), 1e-5);
  EXPECT_LT(mass_bound(problem, numerics, row), 1e-5);
  EXPECT_EQ(weight_bound(problem, numerics, row, 0), 1);
}

// An engine that holds scores, weights or keys in less than fp32.
struct Coarse {
  const char* name;
  AttentionVariant variant;
  Numerics numerics;
};

Engine coarse_engine(const Coarse& coarse, bool confesses) {
  Engine engine = variant_engine(coarse.name, "", coarse.variant);
  engine.capabilities.numerics = [numerics = coarse.numerics,
                                  confesses](const Problem& problem) {
    return confesses ? numerics : default_numerics(problem);
  };
  return engine;
}

std::vector<Coarse> coarse_variants() {
  Coarse weights{"bf16 weights", {}, {}};
  weights.variant.weights = [](const VariantRow&, const KeyRanges&,
                               std::span<double> row) {
    for (double& p : row) p = quantize(Dtype::kBf16, p);
  };
  weights.numerics.probability = Dtype::kBf16;
  Coarse scores{"fp16 scores", {}, {}};
  scores.variant.scores = [](const VariantRow&, const KeyRanges&,
                             std::span<double> row) {
    for (double& s : row) s = quantize(Dtype::kFp16, s);
  };
  scores.numerics.score = Dtype::kFp16;
  return {weights, scores};
}

TEST(ReferenceBound, CoversAnEngineThatConfessesItsRoundingAndNoOther) {
  for (const Coarse& coarse : coarse_variants()) {
    TestTensors tensors(
        problem_of("num_heads=2 seq_len=80 head_dim=32 mask=causal_top_left"));
    EXPECT_EQ(outside_bound(tensors, coarse_engine(coarse, true)), "");
    EXPECT_NE(outside_bound(tensors, coarse_engine(coarse, false)), "")
        << coarse.name;
  }
}

// Rounds each row to 255 steps between -max and max, as int8 storage does.
std::vector<double> int8_rows(const ConstTensorView& view) {
  const std::int64_t rows = view.shape[2], channels = view.shape[3];
  std::vector<double> stored(static_cast<std::size_t>(rows * channels));
  for (std::int64_t j = 0; j < rows; ++j) {
    double* row = stored.data() + j * channels;
    view.load_row(0, 0, j, 0, channels, row);
    double largest = 0;
    for (std::int64_t k = 0; k < channels; ++k)
      largest = std::max(largest, std::abs(row[k]));
    for (std::int64_t k = 0; k < channels; ++k)
      row[k] = std::nearbyint(row[k] / largest * 127) * largest / 127;
  }
  return stored;
}

TEST(ReferenceBound, CoversKeysAndValuesStoredInInt8) {
  TestTensors tensors(problem_of("seq_len=64 head_dim=32"));
  Engine engine;
  engine.name = "int8";
  engine.run = [](const AttentionCall& call) {
    const auto key = int8_rows(call.key), value = int8_rows(call.value);
    AttentionCall stored = call;
    const auto view = [](const std::vector<double>& rows, const Shape4& shape) {
      return ConstTensorView{reinterpret_cast<const std::byte*>(rows.data()),
                             Dtype::kFp64, shape, contiguous_strides(shape)};
    };
    stored.key = view(key, call.key.shape);
    stored.value = view(value, call.value.shape);
    return run_variant({}, stored);
  };
  EXPECT_NE(outside_bound(tensors, engine), "");
  engine.capabilities.numerics = [](const Problem&) {
    Numerics numerics;
    numerics.key_error = numerics.value_error = 0.5 / 127;
    return numerics;
  };
  EXPECT_EQ(outside_bound(tensors, engine), "");
}

// The leaked key has whatever weight it has; one channel beyond the bound
// flags the row.
TEST(ReferenceBound, IsNarrowEnoughToSeeOneLeakedKeyAmongThousands) {
  const Problem problem = problem_of(
      "seq_len_q=2 seq_len_kv=4096 head_dim=64 mask=causal_bottom_right");
  Problem unmasked = problem;
  unmasked.mask = Mask();
  int flagged = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TestTensors tensors(problem, seed);
    ReferenceRow row, leaky;
    reference_row(tensors.inputs(), 0, 0, 0, row);
    ReferenceInputs inputs = tensors.inputs();
    inputs.problem = &unmasked;
    reference_row(inputs, 0, 0, 0, leaky);
    ASSERT_EQ(leaky.num_keys, row.num_keys + 1);
    bool seen = false;
    for (std::int64_t c = 0; c < 64; ++c) {
      const auto at = static_cast<std::size_t>(c);
      seen = seen || std::abs(row.output[at] - leaky.output[at]) >
                         reference_bound(problem, {}, row, c);
    }
    flagged += seen;
  }
  EXPECT_GE(flagged, 18);
}

}  // namespace
}  // namespace attnguard
