#include "guard/probe/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnguard {
namespace {

// Large beside every probe's values, and still a value that some token could
// have had.
constexpr double kLargeValue = 16384;

struct Filler {
  const Problem* problem;
  ScorePatternPtr scores;
  std::vector<ValueBlock> blocks;
  UnusedFill unused;
  TensorRole role;
  double largest;

  std::int64_t length(std::int64_t b) const {
    return role == TensorRole::kQuery ? problem->len_q(b) : problem->len_kv(b);
  }
  std::int64_t channels() const {
    return role == TensorRole::kValue ? problem->head_dim_v
                                      : problem->head_dim_qk;
  }

  void value(std::int64_t b, std::int64_t g, std::int64_t j, double* to) const {
    std::fill_n(to, problem->head_dim_v, 0.0);
    for (const ValueBlock& block : blocks)
      block.values->value_row(b, g, j, to + block.first_column);
  }

  // A token's row, wherever it lies.
  void token(std::int64_t b, std::int64_t h, std::int64_t s, double* to) const {
    const std::int64_t first = problem->value_in_key ? problem->head_dim_v : 0;
    switch (role) {
      case TensorRole::kQuery:
        if (scores->whole_query()) return scores->query_row(b, h, s, to);
        std::fill_n(to, first, 0.0);
        return scores->query_row(b, h, s, to + first);
      case TensorRole::kKey:
        if (first > 0) value(problem->owner(b, s), h, s, to);
        return scores->key_row(problem->owner(b, s), h, s, to + first);
      case TensorRole::kValue:
      case TensorRole::kOutput:
        return value(problem->owner(b, s), h, s, to);
    }
  }

  // Of another token, as a place holds that was in use before.
  void stale(std::int64_t b, std::int64_t h, std::int64_t s, double* to) const {
    const std::int64_t count = std::max<std::int64_t>(length(b), 1);
    if (length(b) == 0)
      std::fill_n(to, channels(), 1.0);
    else
      token(b, h, (7 * s + 3) % count, to);
  }

  void nobody(std::int64_t b, std::int64_t h, std::int64_t s,
              double* to) const {
    if (unused == UnusedFill::kNan)
      return std::fill_n(to, channels(),
                         std::numeric_limits<double>::quiet_NaN()),
             void();
    if (unused == UnusedFill::kLarge) {
      const double value = std::min(largest / 4, kLargeValue);
      for (std::int64_t c = 0; c < channels(); ++c)
        to[c] = (s + c) % 2 == 0 ? value : -value;
      return;
    }
    if (b == problem->batch) return stale(s % problem->batch, h, s, to);
    token(b, h, s, to);
  }

  void operator()(std::int64_t b, std::int64_t h, std::int64_t s,
                  double* to) const {
    if (b < problem->batch && s < length(b))
      token(b, h, s, to);
    else
      nobody(b, h, s, to);
  }
};

}  // namespace

RowFiller row_filler(const Problem& problem, const PlannedCall& planned,
                     TensorRole role, double largest) {
  return Filler{&problem, planned.scores, planned.blocks, planned.mode.unused,
                role,     largest};
}

RowFiller stale_filler(const Problem& problem, const PlannedCall& planned,
                       TensorRole role, double largest) {
  return [filler = Filler{&problem, planned.scores, planned.blocks,
                          planned.mode.unused, role, largest}](
             std::int64_t b, std::int64_t h, std::int64_t s, double* to) {
    filler.stale(b, h, s, to);
  };
}

std::vector<std::byte> mask_bytes(const Problem& problem) {
  if (problem.mask_form == MaskForm::kImplied) return {};
  const bool additive = problem.mask_form == MaskForm::kAdditive;
  const std::size_t size = additive ? dtype_size(problem.dtype) : 1;
  const std::int64_t len_q = problem.max_len_q();
  const std::int64_t len_kv = problem.max_len_kv();
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(problem.batch * len_q * len_kv) * size);
  std::vector<double> row(static_cast<std::size_t>(len_kv));
  KeyRanges allowed;
  std::byte* to = bytes.data();
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < len_q; ++i) {
      allowed.clear();
      if (i < problem.len_q(b))
        problem.mask.allowed(problem.row(b, i), allowed);
      std::fill(row.begin(), row.end(),
                additive ? -std::numeric_limits<double>::infinity() : 0.0);
      for (const KeyRange& range : allowed.ranges())
        std::fill(row.begin() + range.begin, row.begin() + range.end,
                  additive ? 0.0 : 1.0);
      if (additive)
        encode(problem.dtype, row.data(), len_kv, to, 1);
      else
        for (std::int64_t j = 0; j < len_kv; ++j)
          to[j] = std::byte{static_cast<unsigned char>(
              (row[static_cast<std::size_t>(j)] != 0) ==
              (problem.mask_form == MaskForm::kBoolean))};
      to += static_cast<std::size_t>(len_kv) * size;
    }
  return bytes;
}

}  // namespace attnguard
