// How far an engine is from attention in fp64, in units of what it says of
// its own rounding. Written out once more, apart from the reference, so that
// an adapter and the reference cannot share a mistake.
#ifndef ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_FP64_ERROR_H_
#define ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_FP64_ERROR_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/problem/key_ranges.h"
#include "tests/adapters/llama_cpp/random_call.h"

namespace attnguard {

// One row in fp64, and how far rounding may take each channel (design.md,
// tolerances) when the engine rounds as it says.
struct Fp64Row {
  std::vector<double> output, bound;
};

// A tensor in fp64, decoded once.
class Decoded {
 public:
  explicit Decoded(const ConstTensorView& view)
      : shape_(view.shape), strides_(contiguous_strides(view.shape)) {
    data_.reserve(shape_[0] * strides_[0]);
    for (std::int64_t b = 0; b < shape_[0]; ++b)
      for (std::int64_t h = 0; h < shape_[1]; ++h)
        for (std::int64_t i = 0; i < shape_[2]; ++i)
          for (double x : row_of(view, b, h, i)) data_.push_back(x);
  }

  std::span<const double> row(std::int64_t b, std::int64_t h,
                              std::int64_t i) const {
    return std::span(data_).subspan(
        b * strides_[0] + h * strides_[1] + i * strides_[2], shape_[3]);
  }

 private:
  Shape4 shape_, strides_;
  std::vector<double> data_;
};

struct Inputs {
  const Problem& problem;
  Decoded query, key, value;
};

// The weights of a row's allowed keys and of its sink, and the largest products
// that rounding of the scores grows with.
struct Weights {
  std::vector<std::int64_t> keys;
  std::vector<double> weight;
  double sink = 0;
  double largest = 0, magnitude = 0, block_magnitude = 0;
};

// Of the paper, for a power of two of heads and for the heads beyond it.
inline double slope_of(const Problem& p, std::int64_t h) {
  std::int64_t n = 1;
  while (n * 2 <= p.num_heads) n *= 2;
  const double per_head = *p.alibi_max_bias / static_cast<double>(n);
  return h < n ? std::pow(2.0, -per_head * static_cast<double>(h + 1))
               : std::pow(2.0, -per_head * (static_cast<double>(h - n) + 0.5));
}

inline Weights weights_of(const Inputs& in, std::int64_t b, std::int64_t h,
                          std::int64_t q) {
  const Problem& p = in.problem;
  Weights result;
  KeyRanges allowed;
  p.mask.allowed(p.row(b, q), allowed);
  const std::span<const double> query = in.query.row(b, h, q);
  double abs_query = 0;
  for (double x : query) abs_query += std::abs(x);
  for (const KeyRange& range : allowed.ranges()) {
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const std::span<const double> key = in.key.row(b, p.kv_head_of(h), j);
      double dot = 0, abs_dot = 0;
      for (std::size_t c = 0; c < key.size(); ++c) {
        dot += query[c] * key[c];
        abs_dot += std::abs(query[c] * key[c]);
      }
      double score = dot * p.scale();
      result.largest = std::max(result.largest, std::abs(score));
      if (p.softcap) score = *p.softcap * std::tanh(score / *p.softcap);
      if (p.alibi_max_bias) {
        const std::int64_t newest = q + p.len_kv(b) - p.len_q(b);
        const double bias =
            slope_of(p, h) * std::abs(static_cast<double>(newest - j));
        score -= bias;
        result.largest = std::max(result.largest, bias);
      }
      result.keys.push_back(j);
      result.weight.push_back(score);
      result.magnitude = std::max(result.magnitude, abs_dot);
      result.block_magnitude =
          std::max(result.block_magnitude, abs_query * max_abs(key));
    }
  }
  if (result.keys.empty()) return result;
  double top = std::ranges::max(result.weight);
  if (!p.sinks.empty()) {
    top = std::max(top, p.sink(h));
    result.sink = std::exp(p.sink(h) - top);
    result.largest = std::max(result.largest, std::abs(p.sink(h)));
  }
  double sum = result.sink;
  for (double& w : result.weight) sum += w = std::exp(w - top);
  for (double& w : result.weight) w /= sum;
  result.sink /= sum;
  return result;
}

inline Fp64Row expected_row(const Inputs& in, const Numerics& numerics,
                            std::int64_t b, std::int64_t h, std::int64_t q) {
  const Problem& p = in.problem;
  const Weights weights = weights_of(in, b, h, q);
  const double n = static_cast<double>(weights.keys.size());
  const double u = unit_roundoff(numerics.accumulator);
  const double score_error =
      p.scale() * (5 * std::sqrt(p.head_dim_qk) * u * weights.magnitude +
                   numerics.key_error * weights.block_magnitude) +
      u * (4 * weights.largest + 4 + 6 * p.softcap.value_or(0));
  const double weight_error =
      unit_roundoff(numerics.probability) + 5 * std::sqrt(n) * u;
  Fp64Row row{std::vector<double>(p.head_dim_v),
              std::vector<double>(p.head_dim_v)};
  const auto sum_over_keys = [&](const auto& term) {
    double sum = 0;
    for (std::size_t j = 0; j < weights.keys.size(); ++j)
      sum += weights.weight[j] *
             term(in.value.row(b, p.kv_head_of(h), weights.keys[j]));
    return sum;
  };
  const double stored = sum_over_keys([](auto v) { return max_abs(v); });
  for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
    const double o = sum_over_keys([c](auto v) { return v[c]; });
    row.output[c] = o;
    row.bound[c] =
        2 * score_error *
            (sum_over_keys([c, o](auto v) { return std::abs(v[c] - o); }) +
             weights.sink * std::abs(o)) +
        weight_error * sum_over_keys([c](auto v) { return std::abs(v[c]); }) +
        numerics.value_error * stored +
        unit_roundoff(p.output_dtype()) * std::abs(o) + 1e-7;
  }
  return row;
}

// Largest |engine - fp64| / bound over all rows; 1 is the limit.
inline double worst_ratio(const AttentionCall& call, const Numerics& numerics) {
  const Problem& p = *call.problem;
  const Inputs inputs{p, Decoded(call.query), Decoded(call.key),
                      Decoded(call.value)};
  double worst = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.num_heads; ++h) {
      for (std::int64_t q = 0; q < p.len_q(b); ++q) {
        const Fp64Row expected = expected_row(inputs, numerics, b, h, q);
        const std::vector<double> seen = row_of(call.output, b, h, q);
        for (std::size_t c = 0; c < seen.size(); ++c) {
          const double ratio =
              std::abs(seen[c] - expected.output[c]) / expected.bound[c];
          if (std::isnan(ratio)) return ratio;
          worst = std::max(worst, ratio);
        }
      }
    }
  }
  return worst;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_FP64_ERROR_H_
