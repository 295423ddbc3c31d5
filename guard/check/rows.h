// Shared by the checks: visiting the rows of a problem, and the places of a
// finding in words.
#ifndef ATTNGUARD_GUARD_CHECK_ROWS_H_
#define ATTNGUARD_GUARD_CHECK_ROWS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Below this many rows waking the other threads costs more than it saves.
inline constexpr std::int64_t kRowsPerThread = 1024;

// Calls visit(batch, head, q_index, allowed) for every row that has an
// allowed key: batch by batch, query by query, head innermost, since masks do
// not depend on the head.
template <typename Visit>
void for_each_row(const Problem& problem, Visit visit) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t len_q = problem.len_q(b);
    for (std::int64_t i = 0; i < len_q; ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (allowed.empty()) continue;
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        visit(b, h, i, allowed);
    }
  }
}

// A row and its allowed keys.
struct RowKeys {
  std::int64_t batch, head, query;
  const KeyRanges& allowed;
};

// What a quick look at a row says.
enum class Look {
  kUnjudged,  // The probe cannot tell right from wrong in this row.
  kFine,
  kSuspicious,  // Look closer, one row after the other.
};

inline Look suspicious_if(bool wrong) {
  return wrong ? Look::kSuspicious : Look::kFine;
}

// Calls visit(row) for those rows with an allowed key for which
// look(row, scratch) is kSuspicious, in the order of for_each_row, and returns
// how many rows were judged. `look` runs in parallel and must only read;
// `scratch` is a buffer of its thread. So the usual case, in which nothing is
// wrong, uses every thread, and what is found does not depend on their number.
template <typename LookAt, typename Visit>
std::int64_t visit_rows_where(const Problem& problem, LookAt look,
                              Visit visit) {
  const std::int64_t len_q = problem.max_len_q();
  const std::int64_t places = problem.batch * len_q;
  std::vector<char> marked(static_cast<std::size_t>(places), 0);
  std::int64_t rows = 0;
#pragma omp parallel reduction(+ : rows) \
    if (places * problem.num_heads > kRowsPerThread)
  {
    KeyRanges allowed;
    std::vector<double> scratch;
#pragma omp for schedule(static)
    for (std::int64_t place = 0; place < places; ++place) {
      const std::int64_t b = place / len_q, i = place % len_q;
      if (i >= problem.len_q(b)) continue;
      problem.mask.allowed(problem.row(b, i), allowed);
      if (allowed.empty()) continue;
      for (std::int64_t h = 0; h < problem.num_heads; ++h) {
        const Look seen = look(RowKeys{b, h, i, allowed}, scratch);
        if (seen != Look::kUnjudged) ++rows;
        if (seen == Look::kSuspicious)
          marked[static_cast<std::size_t>(place)] = 1;
      }
    }
  }
  KeyRanges allowed;
  std::vector<double> scratch;
  for (std::int64_t place = 0; place < places; ++place) {
    if (marked[static_cast<std::size_t>(place)] == 0) continue;
    const std::int64_t b = place / len_q, i = place % len_q;
    problem.mask.allowed(problem.row(b, i), allowed);
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      const RowKeys row{b, h, i, allowed};
      if (look(row, scratch) == Look::kSuspicious) visit(row);
    }
  }
  return rows;
}

inline bool has_row_with_keys(const Problem& problem) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (!allowed.empty()) return true;
    }
  return false;
}

// Why a property of rows says nothing about the problem, or empty.
inline std::string no_row_with_keys(const Problem& problem) {
  return has_row_with_keys(problem) ? "" : "no row has an allowed key";
}

// "batch 1, head 3, query 17"
inline std::string row_name(std::int64_t batch, std::int64_t head,
                            std::int64_t query) {
  return "batch " + std::to_string(batch) + ", head " + std::to_string(head) +
         ", query " + std::to_string(query);
}

// Rounding of a weighted mean of values within [-1, 1] over n keys: the
// row-sum bound of the design, lambda = 5, and the storage error of V.
inline double mean_bound(const Problem& problem, const Numerics& numerics,
                         std::int64_t num_keys) {
  return unit_roundoff(numerics.probability) +
         unit_roundoff(problem.output_dtype()) +
         5 * std::sqrt(static_cast<double>(num_keys)) *
             unit_roundoff(numerics.accumulator) +
         numerics.value_error;
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_ROWS_H_
