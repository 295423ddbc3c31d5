#include "guard/engine/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "guard/engine/attention_variant.h"
#include "guard/engine/reference_allowed.h"
#include "guard/engine/row_steps.h"

namespace attnguard {
namespace {

// Standard deviations that a sum of n roundings, each at most u, is allowed:
// its error is lambda * sqrt(n) * u.
constexpr double kDeviations = 5;

std::vector<double> decode_dense(const Problem& problem,
                                 const ConstTensorView& view) {
  const Shape4& shape = view.shape;
  std::vector<double> dense(
      static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
#pragma omp parallel for collapse(2) if (dense.size() > (1 << 20))
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t j = 0; j < problem.len_kv(b); ++j)
        view.load_row(
            b, h, j, 0, shape[3],
            dense.data() + ((b * shape[1] + h) * shape[2] + j) * shape[3]);
  return dense;
}

ConstTensorView dense_view(const std::vector<double>& data,
                           const Shape4& shape) {
  return {reinterpret_cast<const std::byte*>(data.data()), Dtype::kFp64, shape,
          contiguous_strides(shape)};
}

double max_abs(const double* row, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::abs(row[i]));
  return largest;
}

// What the scores contribute to the bound; `scores` are still scores.
void measure_scores(const double* query, const Fp64Rows& key,
                    std::int64_t head_dim_qk, const KeyRanges& allowed,
                    const double* scores, ReferenceRow& row) {
  // Before they are bent: the raw sums are what rounds.
  row.score_magnitude = row.max_abs_score = 0;
  double largest_key = 0;
  for (const KeyRange& range : allowed.ranges()) {
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const double* k_row = key.row(j);
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t k = 0; k < head_dim_qk; ++k)
        sum += std::abs(query[k] * k_row[k]);
      row.score_magnitude = std::max(row.score_magnitude, sum);
      row.max_abs_score = std::max(row.max_abs_score, std::abs(scores[j]));
      largest_key = std::max(largest_key, max_abs(k_row, head_dim_qk));
    }
  }
  double query_sum = 0;
  for (std::int64_t k = 0; k < head_dim_qk; ++k)
    query_sum += std::abs(query[k]);
  row.key_block_magnitude = largest_key * query_sum;
}

// What the values contribute; the row's output is known.
void measure_values(const double* weights, const Fp64Rows& value,
                    std::int64_t head_dim_v, const KeyRanges& allowed,
                    ReferenceRow& row) {
  const auto channels = static_cast<std::size_t>(head_dim_v);
  row.mass = 0;
  row.weighted_abs.assign(channels, 0);
  row.spread.assign(channels, 0);
  row.total_abs.assign(channels, 0);
  row.value_block_magnitude = 0;
  double* weighted_abs = row.weighted_abs.data();
  double* spread = row.spread.data();
  double* total_abs = row.total_abs.data();
  const double* output = row.output.data();
  for (const KeyRange& range : allowed.ranges()) {
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const double* v_row = value.row(j);
      const double weight = weights[j];
#pragma omp simd
      for (std::int64_t c = 0; c < head_dim_v; ++c) {
        weighted_abs[c] += weight * std::abs(v_row[c]);
        spread[c] += weight * std::abs(v_row[c] - output[c]);
        total_abs[c] += std::abs(v_row[c]);
      }
      row.value_block_magnitude += weight * max_abs(v_row, head_dim_v);
      row.mass += weight;
    }
  }
  const double sink_weight = std::max(1 - row.mass, 0.0);
  if (sink_weight > 1e-15)
    for (std::int64_t c = 0; c < head_dim_v; ++c)
      spread[c] += sink_weight * std::abs(output[c]);
}

// Errors of a row's scores and exponentials, in nats.
double exponent_error(const Problem& problem, const Numerics& numerics,
                      const ReferenceRow& row) {
  const double u_sum = unit_roundoff(numerics.accumulator);
  const double u_score = unit_roundoff(numerics.score);
  double error =
      problem.scale() *
      (kDeviations * std::sqrt(static_cast<double>(problem.head_dim_qk)) *
           u_sum * row.score_magnitude +
       numerics.key_error * row.key_block_magnitude);
  if (u_score > u_sum) error += u_score * row.max_abs_score;
  if (problem.softcap) error += 6 * u_sum * *problem.softcap;
  return error + u_sum * (4 * row.max_abs_score + 4);
}

// What errors of the scores move of `amount`, which may be 0 where they are
// beyond all bounds: nothing then.
double moved_by_scores(const Problem& problem, const Numerics& numerics,
                       const ReferenceRow& row, double amount) {
  if (amount == 0) return 0;
  return std::expm1(2 * exponent_error(problem, numerics, row)) * amount;
}

// Relative error of a weight and of sums of weights.
double sum_error(const Numerics& numerics, const ReferenceRow& row) {
  return unit_roundoff(numerics.probability) +
         kDeviations * std::sqrt(static_cast<double>(row.num_keys)) *
             unit_roundoff(numerics.accumulator);
}

// What a row without keys gives.
void fill_empty_row(const ReferenceInputs& inputs, std::int64_t batch,
                    std::int64_t kv_head, std::vector<double>& value_buffer,
                    ReferenceRow& row) {
  const Problem& problem = *inputs.problem;
  const std::int64_t count = problem.len_kv(batch);
  if (problem.empty_row == EmptyRow::kNan)
    std::fill(row.output.begin(), row.output.end(),
              std::numeric_limits<double>::quiet_NaN());
  if (problem.empty_row != EmptyRow::kMean || count == 0) return;
  KeyRanges all;
  all.append(0, count);
  const std::vector<double> equal(static_cast<std::size_t>(count),
                                  1.0 / static_cast<double>(count));
  const Fp64Rows value =
      fp64_rows(inputs.value, batch, kv_head, all, value_buffer);
  row.num_keys = count;
  mix_values(equal.data(), value, problem.head_dim_v, all, row.output.data());
  measure_values(equal.data(), value, problem.head_dim_v, all, row);
}

// Weights below this may be lost whole: the smallest normal number of types
// with fp32's exponent (engines flush there), half the smallest subnormal of
// fp16, which is not flushed.
double weight_floor(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64:
      return 0x1p-1021;
    case Dtype::kFp32:
    case Dtype::kBf16:
      return 0x1p-125;
    case Dtype::kFp16:
      return 0x1p-25;
  }
  return 0;
}

}  // namespace

DecodedInputs::DecodedInputs(const ReferenceInputs& inputs)
    : inputs_(inputs),
      key_(decode_dense(*inputs.problem, inputs.key)),
      value_(decode_dense(*inputs.problem, inputs.value)) {}

ReferenceInputs DecodedInputs::inputs() const {
  return {inputs_.problem, inputs_.query, dense_view(key_, inputs_.key.shape),
          dense_view(value_, inputs_.value.shape)};
}

void reference_row(const ReferenceInputs& inputs, std::int64_t batch,
                   std::int64_t head, std::int64_t q_index, ReferenceRow& row) {
  thread_local KeyRanges allowed;
  const Problem& problem = *inputs.problem;
  problem.mask.allowed(problem.row(batch, q_index), allowed);
  reference_row_of(inputs, batch, head, q_index, allowed, row);
}

void reference_row_of(const ReferenceInputs& inputs, std::int64_t batch,
                      std::int64_t head, std::int64_t q_index,
                      const KeyRanges& allowed, ReferenceRow& row) {
  // Kept between calls: judging rows allocates only while they grow.
  thread_local std::vector<double> query, key_buffer, value_buffer;
  const Problem& problem = *inputs.problem;
  const RowPlace place = problem.row(batch, q_index);
  row.num_keys = allowed.count();

  query.resize(static_cast<std::size_t>(problem.head_dim_qk));
  row.weights.resize(static_cast<std::size_t>(place.seq_len_kv));
  double* weights = row.weights.data();
  inputs.query.load_row(batch, head, q_index, 0, problem.head_dim_qk,
                        query.data());
  const std::int64_t kv_head = problem.kv_head_of(head);
  const Fp64Rows key =
      fp64_rows(inputs.key, batch, kv_head, allowed, key_buffer);
  score_row(query.data(), key, problem.head_dim_qk, problem.scale(), allowed,
            weights);
  measure_scores(query.data(), key, problem.head_dim_qk, allowed, weights, row);
  bend_scores(problem, head, place, allowed, weights);
  if (problem.alibi_max_bias && !allowed.empty())
    row.max_abs_score += problem.alibi_slope(head) *
                         static_cast<double>(std::max(
                             std::abs(allowed.first() - place.bottom_right()),
                             std::abs(allowed.last() - place.bottom_right())));
  if (!problem.sinks.empty())
    row.max_abs_score =
        std::max(row.max_abs_score, std::abs(problem.sink(head)));
  row.lse = softmax_row(allowed, weights, problem.sink(head));

  const Fp64Rows value =
      fp64_rows(inputs.value, batch, kv_head, allowed, value_buffer);
  row.output.resize(static_cast<std::size_t>(problem.head_dim_v));
  mix_values(weights, value, problem.head_dim_v, allowed, row.output.data());
  measure_values(weights, value, problem.head_dim_v, allowed, row);
  if (allowed.empty())
    fill_empty_row(inputs, batch, kv_head, value_buffer, row);
}

double reference_bound(const Problem& problem, const Numerics& numerics,
                       const ReferenceRow& row, std::int64_t channel) {
  if (row.num_keys == 0) return 0;
  const auto c = static_cast<std::size_t>(channel);
  const Dtype out = problem.output_dtype();
  // Without spread no weights can move the output, however wrong they are.
  return moved_by_scores(problem, numerics, row, row.spread[c]) +
         sum_error(numerics, row) * row.weighted_abs[c] +
         numerics.value_error * row.value_block_magnitude +
         unit_roundoff(out) * std::abs(row.output[c]) +
         weight_floor(numerics.probability) * row.total_abs[c] +
         weight_floor(out);
}

double mass_bound(const Problem& problem, const Numerics& numerics,
                  const ReferenceRow& row) {
  // The output for v = 1: its spread is that of the sink, twice.
  const double spread = 2 * row.mass * std::max(1 - row.mass, 0.0);
  return moved_by_scores(problem, numerics, row, spread) +
         sum_error(numerics, row) * row.mass +
         unit_roundoff(problem.output_dtype()) + numerics.value_error;
}

double weight_bound(const Problem& problem, const Numerics& numerics,
                    const ReferenceRow& row, std::int64_t kv_index) {
  // Weights are reported in fp32 at least.
  const double stored = unit_roundoff(
      problem.dtype == Dtype::kFp64 ? Dtype::kFp64 : Dtype::kFp32);
  const double relative =
      std::expm1(2 * exponent_error(problem, numerics, row) +
                 sum_error(numerics, row) + stored);
  // No weight is above 1, whatever rounding does.
  if (!std::isfinite(relative)) return 1;
  return relative * row.weights[static_cast<std::size_t>(kv_index)] +
         weight_floor(numerics.probability) +
         weight_floor(problem.dtype == Dtype::kFp64 ? Dtype::kFp64
                                                    : Dtype::kFp32);
}

double lse_bound(const Problem& problem, const Numerics& numerics,
                 const ReferenceRow& row) {
  // The result is stored in fp32 at least; the largest score is added to the
  // logarithm of a sum.
  return exponent_error(problem, numerics, row) + sum_error(numerics, row) +
         4 *
             unit_roundoff(problem.dtype == Dtype::kFp64 ? Dtype::kFp64
                                                         : Dtype::kFp32) *
             (std::abs(row.lse) + 1);
}

Engine reference_engine() {
  return variant_engine("builtin:reference",
                        "attention in fp64, row by row: the gold reference",
                        {});
}

}  // namespace attnguard
