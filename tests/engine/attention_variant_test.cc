#include "guard/engine/attention_variant.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <cmath>
#include <numeric>

#include "tests/engine/test_tensors.h"

namespace attnguard {
namespace {

Problem small_problem() {
  return problem_of(
      "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=6,3 seq_len_kv=7,4 "
      "head_dim=4 dtype=fp64 mask=causal_bottom_right");
}

std::vector<double> variant_output(const AttentionVariant& variant) {
  TestTensors tensors(small_problem());
  return tensors.run(variant_engine("variant", "", variant));
}

TEST(AttentionVariant, IsTheReferenceWithoutHooks) {
  TestTensors tensors(small_problem());
  EXPECT_EQ(outside_bound(tensors, variant_engine("variant", "", {})), "");
}

TEST(AttentionVariant, IsTheReferenceWithHooksThatDoTheRightThing) {
  AttentionVariant variant;
  variant.allowed = [](const VariantRow&, KeyRanges&) {};
  variant.place = [](const VariantRow&, RowPlace&) {};
  variant.query_head = [](const Problem&, std::int64_t h) { return h; };
  variant.key_slot = [](const Problem& p, std::int64_t b, std::int64_t h) {
    return KvSlot{b, p.kv_head_of(h)};
  };
  variant.value_slot = variant.key_slot;
  variant.stored = [](const AttentionCall&, TensorRole, const KvSlot&,
                      std::span<double>) {};
  variant.query = [](const VariantRow&, std::span<double>) {};
  variant.scale = [](const Problem& p) { return p.scale(); };
  variant.scores = [](const VariantRow&, const KeyRanges&, std::span<double>) {
  };
  variant.weights = variant.scores;
  variant.mix = [](const VariantRow&, const KeyRanges& keys,
                   std::span<const double> weights, const Fp64Rows& value,
                   std::span<double> output) {
    mix_values(weights.data(), value, static_cast<std::int64_t>(output.size()),
               keys, output.data());
  };
  variant.output = [](const VariantRow&, std::span<double>) {};
  variant.keeps = [](const VariantRow&) { return true; };
  AttentionVariant by_row = variant;
  by_row.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                          std::span<double> scores) {
    softmax_row(keys, scores.data());
  };
  AttentionVariant by_matrix = variant;
  by_matrix.softmax = [](const Problem&, std::span<VariantScores> entries) {
    for (VariantScores& matrix : entries)
      for (std::int64_t i = 0; i < matrix.seq_len_q; ++i)
        softmax_row(matrix.keys[static_cast<std::size_t>(i)], matrix.row(i));
  };
  const std::vector<double> right = variant_output({});
  EXPECT_EQ(variant_output(variant), right);
  EXPECT_EQ(variant_output(by_row), right);
  EXPECT_EQ(variant_output(by_matrix), right);
}

TEST(AttentionVariant, ChangesTheResultThroughEveryHook) {
  const std::vector<double> right = variant_output({});
  AttentionVariant variant;
  variant.allowed = [](const VariantRow&, KeyRanges& keys) { keys.clear(); };
  EXPECT_EQ(variant_output(variant), std::vector<double>(right.size(), 0.0));

  variant = {};
  variant.key_slot = [](const Problem&, std::int64_t, std::int64_t) {
    return KvSlot{0, 0};
  };
  EXPECT_NE(variant_output(variant), right);

  variant = {};
  variant.value_slot = [](const Problem&, std::int64_t b, std::int64_t) {
    return KvSlot{b, 0};
  };
  EXPECT_NE(variant_output(variant), right);

  variant = {};
  variant.place = [](const VariantRow&, RowPlace& place) { place.q_index = 0; };
  EXPECT_NE(variant_output(variant), right);

  variant = {};
  variant.query_head = [](const Problem&, std::int64_t) { return 0; };
  EXPECT_NE(variant_output(variant), right);

  variant = {};
  variant.query = [](const VariantRow&, std::span<double> query) {
    query[0] = 0;
  };
  EXPECT_NE(variant_output(variant), right);

  for (TensorRole changed : {TensorRole::kKey, TensorRole::kValue}) {
    variant = {};
    variant.stored = [changed](const AttentionCall&, TensorRole role,
                               const KvSlot&, std::span<double> rows) {
      if (role == changed) rows[0] += 1;
    };
    EXPECT_NE(variant_output(variant), right);
  }

  variant = {};
  variant.row_softmax = [](const VariantRow&, const KeyRanges&,
                           std::span<double> scores) {
    std::fill(scores.begin(), scores.end(), 0.0);
  };
  EXPECT_EQ(variant_output(variant), std::vector<double>(right.size(), 0.0));

  variant = {};
  variant.scale = [](const Problem&) { return 3.0; };
  EXPECT_NE(variant_output(variant), right);

  variant = {};
  variant.scores = [](const VariantRow&, const KeyRanges& keys,
                      std::span<double> scores) {
    if (!keys.empty()) scores[static_cast<std::size_t>(keys.first())] += 1;
  };
  EXPECT_NE(variant_output(variant), right);

  variant = {};
  variant.softmax = [](const Problem&, std::span<VariantScores> entries) {
    for (VariantScores& matrix : entries)
      std::fill(matrix.values.begin(), matrix.values.end(), 0.0);
  };
  EXPECT_EQ(variant_output(variant), std::vector<double>(right.size(), 0.0));

  variant = {};
  variant.weights = [](const VariantRow&, const KeyRanges&,
                       std::span<double> weights) {
    for (double& p : weights) p *= 2;
  };
  std::vector<double> doubled = right;
  for (double& x : doubled) x *= 2;
  EXPECT_EQ(variant_output(variant), doubled);

  variant = {};
  variant.mix = [](const VariantRow& row, const KeyRanges&,
                   std::span<const double>, const Fp64Rows&,
                   std::span<double> output) {
    std::fill(output.begin(), output.end(), static_cast<double>(row.head));
  };
  const std::vector<double> heads = variant_output(variant);
  EXPECT_EQ(heads.front(), 0);
  EXPECT_EQ(heads.back(), 3);

  variant = {};
  variant.output = [](const VariantRow&, std::span<double> output) {
    for (double& x : output) x *= 2;
  };
  EXPECT_EQ(variant_output(variant), doubled);
}

TEST(AttentionVariant, ReadsThePaddingThatItsPlaceClaims) {
  AttentionVariant variant;
  variant.place = [](const VariantRow& row, RowPlace& place) {
    place.seq_len_kv = row.problem.max_len_kv() + 5;
  };
  TestTensors tensors(problem_of("batch=2 seq_len_kv=7,4 head_dim=4"));
  tensors.run(variant_engine("variant", "", variant));
  EXPECT_TRUE(std::isfinite(tensors.output(0, 0, 0)));
  EXPECT_TRUE(std::isnan(tensors.output(1, 0, 0)));
}

TEST(AttentionVariant, WritesOnlyTheRowsItKeeps) {
  AttentionVariant variant;
  variant.keeps = [](const VariantRow& row) {
    return row.place.batch == 0 && row.head == 1 && row.place.q_index == 2;
  };
  TestTensors tensors(small_problem());
  tensors.run(variant_engine("variant", "", variant));
  const TensorView out = tensors.view(TensorRole::kOutput);
  EXPECT_FALSE(is_poison(out.dtype, out.at(0, 1, 2, 3)));
  EXPECT_TRUE(is_poison(out.dtype, out.at(0, 1, 3)));
  EXPECT_TRUE(is_poison(out.dtype, out.at(1, 1, 2)));
  EXPECT_TRUE(is_poison(out.dtype, out.at(0, 2, 2)));
}

TEST(AttentionVariant, VisitsEachRowOnceForAnyThreadCount) {
  // Large enough to be shared among threads.
  const Problem problem =
      problem_of("num_heads=2 seq_len=300 head_dim=32 dtype=fp64");
  const int threads = omp_get_max_threads();
  std::vector<double> results[2];
  for (int count : {1, 3}) {
    omp_set_num_threads(count);
    std::atomic<int> rows = 0;
    AttentionVariant variant;
    variant.output = [&](const VariantRow&, std::span<double>) { ++rows; };
    TestTensors tensors(problem);
    results[count / 2] = tensors.run(variant_engine("variant", "", variant));
    EXPECT_EQ(rows, 600);
  }
  omp_set_num_threads(threads);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace attnguard
