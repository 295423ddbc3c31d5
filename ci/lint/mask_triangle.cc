// mask-triangle: a constant causal mask allows a query itself and the past.
#include <algorithm>
#include <tuple>

#include "ci/lint/rule.h"

namespace attnguard::lint {
namespace {

// Smaller masks are triangles of any kind by chance.
constexpr std::int64_t kSmallest = 3;

// Which keys each query may attend: [query][key].
struct Allowed {
  std::int64_t queries = 0, keys = 0;
  std::vector<bool> cells;

  bool at(std::int64_t q, std::int64_t k) const {
    return cells[static_cast<std::size_t>(q * keys + k)];
  }
};

// The first matrix of the mask; nullopt: not one of queries by keys.
std::optional<Allowed> allowed_by(const MaskTerm& mask) {
  const Array& array = *mask.array;
  if (mask.axes.query == 0 || mask.axes.key == 0 ||
      -std::min(mask.axes.query, mask.axes.key) > array.rank())
    return std::nullopt;
  const auto place = [&](int axis) {
    return static_cast<std::size_t>(axis + array.rank());
  };
  const auto stride = [&](int axis) {
    std::int64_t made = 1;
    for (std::size_t i = place(axis) + 1; i < array.dims.size(); ++i)
      made *= array.dims[i];
    return made;
  };
  Allowed made{
      array.dims[place(mask.axes.query)], array.dims[place(mask.axes.key)], {}};
  if (std::min(made.queries, made.keys) < kSmallest || array.values.empty())
    return std::nullopt;
  double limit = 0;
  if (mask.meaning == Meaning::kAdditive) {
    const auto sentinel = sentinel_of(array);
    if (!sentinel) return std::nullopt;
    limit = *sentinel / 2;
  }
  const std::int64_t down = stride(mask.axes.query),
                     right = stride(mask.axes.key);
  for (std::int64_t q = 0; q < made.queries; ++q)
    for (std::int64_t k = 0; k < made.keys; ++k) {
      const double value =
          array.values[static_cast<std::size_t>(q * down + k * right)];
      made.cells.push_back(mask.meaning == Meaning::kAdditive  ? value > limit
                           : mask.meaning == Meaning::kAllowed ? value != 0
                                                               : value == 0);
    }
  return made;
}

template <typename Predicate>
bool all_cells(const Allowed& allowed, Predicate expected) {
  for (std::int64_t q = 0; q < allowed.queries; ++q)
    for (std::int64_t k = 0; k < allowed.keys; ++k)
      if (allowed.at(q, k) != expected(q, k)) return false;
  return true;
}

// The largest key - query that is allowed, and the smallest.
std::pair<std::int64_t, std::int64_t> reach(const Allowed& allowed) {
  std::int64_t most = -allowed.queries, least = allowed.keys;
  for (std::int64_t q = 0; q < allowed.queries; ++q)
    for (std::int64_t k = 0; k < allowed.keys; ++k)
      if (allowed.at(q, k)) {
        most = std::max(most, k - q);
        least = std::min(least, k - q);
      }
  return {most, least};
}

// What is wrong with it; "" for a right triangle and for anything else.
std::string fault_of(const Allowed& allowed) {
  std::int64_t most = 0, least = 0;
  std::tie(most, least) = reach(allowed);
  const std::int64_t last = allowed.keys - 1, first = 1 - allowed.queries;
  // Lines that end at the border of the matrix reach as far as it goes.
  const bool lower = most < last && all_cells(allowed, [&](auto q, auto k) {
                       return k - q <= most;
                     });
  const bool upper = least > first && all_cells(allowed, [&](auto q, auto k) {
                       return k - q >= least;
                     });
  // A band (sliding window) ends at its own far edge.
  const bool band =
      most < last && least > first && all_cells(allowed, [&](auto q, auto k) {
        return k - q <= most && k - q >= least;
      });
  const std::int64_t offset = allowed.keys - allowed.queries;
  const auto off_by = [&](std::int64_t by) {
    return most == by && (offset == 0 || offset != by);
  };
  if (upper)
    return least <= 0 ? "each query sees itself and later keys, and none of "
                        "the past: the triangle is the upper one"
                      : "each query sees future keys only: the triangle is "
                        "the upper one, or the mask is inverted";
  if ((lower || (band && most - least > 2)) && off_by(1))
    return "each query sees the next token too: the diagonal is 1, and must "
           "be 0";
  if (lower && off_by(-1))
    return "no query sees itself, and the first sees nothing: the diagonal is "
           "-1, and must be 0";
  return "";
}

void judge_mask_triangle(const Attention& attention, const Masks& masks,
                         Evaluator&, std::vector<Finding>& findings) {
  for (const MaskTerm& mask : masks.terms) {
    if (mask.array == nullptr) continue;
    const auto allowed = allowed_by(mask);
    if (!allowed) continue;
    const std::string fault = fault_of(*allowed);
    if (fault.empty()) continue;
    findings.push_back(
        {kMaskTriangle.id, mask.node->name,
         "constant mask '" + mask.value + "' of the attention " +
             attention.node->name + ": " + fault,
         "allow key <= query: tril(ones) where true may attend, or "
         "triu(full(-inf), diagonal=1) where it is added"});
  }
}

}  // namespace

const Rule kMaskTriangle = {
    .id = "mask-triangle",
    .summary = "a constant triangle allows a query itself and earlier keys",
    .explanation =
        R"(mask-triangle: a constant triangle allows a query itself and earlier keys

What it sees
  Masks that are made of constants (initialisers, Trilu, Range and comparisons,
  Where) are computed, with 8 in place of lengths that only a run knows. If the
  allowed keys form a triangle, it must be key <= query, counted from the first
  or the last key. Found are the upper triangle (itself and later keys, or
  later keys only: often an inverted mask) and triangles that are off by one.
  Windows, padding and anything else that is no triangle are no findings.

      right      upper      inverted   diagonal 1   diagonal -1
      # . . .    # # # #    . # # #    # # . .      . . . .
      # # . .    . # # #    . . # #    # # # .      # . . .
      # # # .    . . # #    . . . #    # # # #      # # . .
      # # # #    . . . #    . . . .    # # # #      # # # .

Fix
  torch.tril(ones) where true may attend; torch.triu(full(-inf), diagonal=1)
  where it is added to the scores.
)",
    .one = judge_mask_triangle};

}  // namespace attnguard::lint
