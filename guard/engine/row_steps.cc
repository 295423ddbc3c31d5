#include "guard/engine/row_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnguard {

Fp64Rows fp64_rows(const ConstTensorView& view, std::int64_t batch,
                   std::int64_t head, const KeyRanges& positions,
                   std::vector<double>& buffer) {
  if (positions.empty()) return {};
  if (view.dtype == Dtype::kFp64 && view.strides[3] == 1 &&
      view.tokens == nullptr)
    return {reinterpret_cast<const double*>(view.at(batch, head, 0)),
            view.strides[2]};
  const std::int64_t channels = view.shape[3];
  const auto size = static_cast<std::size_t>((positions.last() + 1) * channels);
  if (buffer.size() < size) buffer.resize(size);
  for (const KeyRange& range : positions.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      view.load_row(batch, head, j, 0, channels, buffer.data() + j * channels);
  return {buffer.data(), channels};
}

void score_row(const double* query, const Fp64Rows& key,
               std::int64_t head_dim_qk, double scale, const KeyRanges& allowed,
               double* scores) {
  for (const KeyRange& range : allowed.ranges()) {
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const double* row = key.row(j);
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t k = 0; k < head_dim_qk; ++k) sum += query[k] * row[k];
      scores[j] = scale * sum;
    }
  }
}

void cap_scores(double softcap, const KeyRanges& allowed, double* scores) {
  for (const KeyRange& range : allowed.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      scores[j] = softcap * std::tanh(scores[j] / softcap);
}

void add_alibi(double slope, std::int64_t position, const KeyRanges& allowed,
               double* scores) {
  for (const KeyRange& range : allowed.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      scores[j] -= slope * static_cast<double>(std::abs(j - position));
}

void bend_scores(const Problem& problem, std::int64_t head,
                 const RowPlace& place, const KeyRanges& allowed,
                 double* scores) {
  if (problem.softcap) cap_scores(*problem.softcap, allowed, scores);
  if (problem.alibi_max_bias)
    add_alibi(problem.alibi_slope(head), place.bottom_right(), allowed, scores);
}

double softmax_row(const KeyRanges& allowed, double* scores, double sink) {
  double largest = sink;
  for (const KeyRange& range : allowed.ranges())
    largest = std::max(
        largest, *std::max_element(scores + range.begin, scores + range.end));
  if (largest == -std::numeric_limits<double>::infinity() && allowed.empty())
    return largest;
  double sum = std::exp(sink - largest);
  for (const KeyRange& range : allowed.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      sum += scores[j] = std::exp(scores[j] - largest);
  for (const KeyRange& range : allowed.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j) scores[j] /= sum;
  return largest + std::log(sum);
}

void mix_values(const double* weights, const Fp64Rows& value,
                std::int64_t head_dim_v, const KeyRanges& allowed,
                double* output) {
  std::fill_n(output, head_dim_v, 0.0);
  for (const KeyRange& range : allowed.ranges()) {
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const double* row = value.row(j);
      const double weight = weights[j];
#pragma omp simd
      for (std::int64_t c = 0; c < head_dim_v; ++c)
        output[c] += weight * row[c];
    }
  }
}

}  // namespace attnguard
