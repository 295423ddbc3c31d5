// Attention as a textbook writes it: all scores of a head, softmax of each
// row, product with the values. No tiles and no running maximum, so it shares
// no code and few faults with fast kernels. Sums in fp32, in fp64 for fp64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "adapters/plain/builtin_table.h"
#include "adapters/plain/threads.h"

namespace attnguard {
namespace {

// Rows of one (batch, head) as Real: [length, channels], dense.
template <typename Real>
std::vector<Real> load_rows(const ConstTensorView& view, std::int64_t batch,
                            std::int64_t head, std::int64_t length) {
  const std::int64_t channels = view.shape[3];
  std::vector<double> row(static_cast<std::size_t>(channels));
  std::vector<Real> rows;
  rows.reserve(static_cast<std::size_t>(length * channels));
  for (std::int64_t i = 0; i < length; ++i) {
    view.load_row(batch, head, i, 0, channels, row.data());
    for (double x : row) rows.push_back(static_cast<Real>(x));
  }
  return rows;
}

template <typename Real>
Real dot(const Real* a, const Real* b, std::int64_t count) {
  Real sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

// Masked scores hold -inf and become 0.
template <typename Real>
void softmax(Real* row, std::int64_t count) {
  const Real largest = *std::max_element(row, row + count);
  Real sum = 0;
  for (std::int64_t j = 0; j < count; ++j)
    sum += row[j] = std::exp(row[j] - largest);
  for (std::int64_t j = 0; j < count; ++j) row[j] /= sum;
}

template <typename Real>
void run_head(const AttentionCall& call, std::int64_t b, std::int64_t h) {
  const Problem& p = *call.problem;
  const std::int64_t g = p.kv_head_of(h);
  const std::int64_t len_q = p.len_q(b), len_kv = p.len_kv(b);
  const auto query = load_rows<Real>(call.query, b, h, len_q);
  const auto key = load_rows<Real>(call.key, b, g, len_kv);
  const auto value = load_rows<Real>(call.value, b, g, len_kv);

  constexpr Real kMasked = -std::numeric_limits<Real>::infinity();
  std::vector<Real> scores(static_cast<std::size_t>(len_q * len_kv), kMasked);
  std::vector<KeyRanges> allowed(static_cast<std::size_t>(len_q));
  for (std::int64_t i = 0; i < len_q; ++i) {
    p.mask.allowed(p.row(b, i), allowed[i]);
    if (allowed[i].empty()) continue;
    for (const KeyRange& range : allowed[i].ranges())
      for (std::int64_t j = range.begin; j < range.end; ++j)
        scores[i * len_kv + j] = static_cast<Real>(p.scale()) *
                                 dot(&query[i * p.head_dim_qk],
                                     &key[j * p.head_dim_qk], p.head_dim_qk);
    softmax(&scores[i * len_kv], len_kv);
  }

  std::vector<double> stored(static_cast<std::size_t>(p.head_dim_v));
  for (std::int64_t i = 0; i < len_q; ++i) {
    std::vector<Real> output(static_cast<std::size_t>(p.head_dim_v), Real{0});
    for (const KeyRange& range : allowed[i].ranges())
      for (std::int64_t j = range.begin; j < range.end; ++j)
        for (std::int64_t c = 0; c < p.head_dim_v; ++c)
          output[c] += scores[i * len_kv + j] * value[j * p.head_dim_v + c];
    std::copy(output.begin(), output.end(), stored.begin());
    call.output.store_row(b, h, i, 0, p.head_dim_v, stored.data());
  }
}

Status run(const AttentionCall& call) {
  const Problem& problem = *call.problem;
#pragma omp parallel for collapse(2) \
    schedule(dynamic) if (is_worth_threads(problem))
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      if (problem.dtype == Dtype::kFp64)
        run_head<double>(call, b, h);
      else
        run_head<float>(call, b, h);
    }
  }
  return ok_status();
}

Engine make_textbook() {
  Engine engine;
  engine.run = run;
  return engine;
}

}  // namespace

const BuiltinEngine kBuiltinTextbook = {
    .name = "textbook",
    .summary =
        "all scores, softmax, product, in fp32 (fp64 for fp64): no "
        "tiles, no tricks",
    .make = make_textbook,
};

}  // namespace attnguard
