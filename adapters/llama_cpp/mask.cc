#include "adapters/llama_cpp/mask.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "adapters/llama_cpp/transfer.h"
#include "guard/engine/mask_tensor.h"
#include "guard/problem/key_ranges.h"

namespace attnguard::ggml {
namespace {

// Calls visit(place, allowed) for every row until it returns true; whether it
// did.
template <typename Visit>
bool any_row(const Problem& problem, const Visit& visit) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t q = 0; q < problem.len_q(b); ++q) {
      const RowPlace place = problem.row(b, q);
      problem.mask.allowed(place, allowed);
      if (visit(place, allowed)) return true;
    }
  }
  return false;
}

// Writes one row's allowed keys; `row` is the element of the entry's key 0.
void fill_row(const Problem& problem, const RowPlace& place,
              const KeyRanges& allowed, Dtype dtype,
              std::vector<double>& distances, std::byte* row) {
  const auto size = static_cast<std::int64_t>(dtype_size(dtype));
  for (const KeyRange& range : allowed.ranges()) {
    std::byte* const to = row + range.begin * size;
    const std::int64_t count = range.end - range.begin;
    if (!problem.alibi_max_bias) {
      std::memset(to, 0, static_cast<std::size_t>(count * size));
      continue;
    }
    distances.resize(static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < count; ++j)
      distances[static_cast<std::size_t>(j)] = -static_cast<double>(
          std::abs(range.begin + j - place.bottom_right()));
    encode(dtype, distances.data(), count, to, 1);
  }
}

}  // namespace

std::int64_t mask_rows(const TokenRows& queries) {
  return (queries.rows + 63) / 64 * 64;
}

bool needs_mask(const Problem& problem, const TokenRows& keys) {
  if (problem.alibi_max_bias || problem.mask_form != MaskForm::kImplied)
    return true;
  return any_row(problem, [&](const RowPlace&, const KeyRanges& allowed) {
    return allowed.count() != keys.rows;
  });
}

MaskExtremes mask_extremes(const Problem& problem) {
  MaskExtremes result;
  any_row(problem, [&](const RowPlace& place, const KeyRanges& allowed) {
    if (allowed.empty()) {
      result.has_empty_row = true;
      return false;
    }
    for (std::int64_t key : {allowed.first(), allowed.last()})
      result.distance =
          std::max(result.distance, std::abs(key - place.bottom_right()));
    return false;
  });
  return result;
}

void fill_mask(const AttentionCall& call, const TokenRows& queries,
               const TokenRows& keys, Dtype dtype, int threads, void* to) {
  const Problem& problem = *call.problem;
  const auto size = static_cast<std::int64_t>(dtype_size(dtype));
  const std::int64_t row_bytes = keys.rows * size;
  const std::int64_t rows = mask_rows(queries);
  const std::vector<double> masked(static_cast<std::size_t>(keys.rows),
                                   -std::numeric_limits<double>::infinity());
  std::vector<std::byte> masked_row(static_cast<std::size_t>(row_bytes));
  encode(dtype, masked.data(), keys.rows, masked_row.data(), 1);
  std::byte* const base = static_cast<std::byte*>(to);
  const int team = threads_for(queries.streams * rows * keys.rows, threads);
#pragma omp parallel num_threads(team)
  {
    KeyRanges allowed;
    std::vector<double> distances;
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < queries.streams * rows; ++row)
      std::memcpy(base + row * row_bytes, masked_row.data(), masked_row.size());
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t q = 0; q < problem.max_len_q(); ++q) {
        if (q >= problem.len_q(b)) continue;
        const RowPlace place = problem.row(b, q);
        allowed_keys(call, place, allowed);
        const auto entry = static_cast<std::size_t>(b);
        const std::int64_t row =
            queries.stream(b) * rows + queries.first[entry] + q;
        fill_row(problem, place, allowed, dtype, distances,
                 base + row * row_bytes + keys.first[entry] * size);
      }
    }
  }
}

}  // namespace attnguard::ggml
