#include "guard/runtime/sampler.h"

#include <algorithm>
#include <cmath>

#include "guard/base/rng.h"

namespace attnguard::runtime_internal {
namespace {

constexpr std::int64_t kTiles[] = {16, 32, 64, 128, 256};

std::int64_t edge_row(std::uint64_t bits, std::int64_t len_q) {
  const std::int64_t kind = uniform_below(mix_bits(bits ^ 1), 8);
  if (kind == 0) return 0;
  if (kind <= 2) return len_q - 1;
  const std::int64_t tile = kTiles[uniform_below(mix_bits(bits ^ 2), 5)];
  const std::int64_t edges = std::max<std::int64_t>(len_q / tile, 1);
  const std::int64_t edge =
      (1 + uniform_below(mix_bits(bits ^ 3), edges)) * tile;
  // The last row of a tile, and the first two of the next.
  const std::int64_t row = edge - 1 + uniform_below(mix_bits(bits ^ 4), 3);
  return std::clamp<std::int64_t>(row, 0, len_q - 1);
}

}  // namespace

std::int64_t draw_gap(std::uint64_t bits, double mean) {
  if (!(mean > 0)) return kNever;
  if (mean <= 1) return 1;
  // In (0, 1].
  const double uniform = (static_cast<double>(bits >> 11) + 1) * 0x1p-53;
  const double gap = 1 + std::floor(std::log(uniform) / std::log1p(-1 / mean));
  return gap < static_cast<double>(kNever) ? static_cast<std::int64_t>(gap)
                                           : kNever;
}

bool pick_row(const Problem& problem, std::uint64_t bits, RowIndex& row) {
  std::int64_t b = uniform_below(mix_bits(bits ^ 5), problem.batch);
  for (std::int64_t tried = 0; problem.len_q(b) == 0; ++tried) {
    if (tried == problem.batch) return false;
    b = (b + 1) % problem.batch;
  }
  const std::int64_t len_q = problem.len_q(b);
  row.batch = b;
  row.head = uniform_below(mix_bits(bits ^ 6), problem.num_heads);
  row.query = uniform_below(mix_bits(bits ^ 7), 2) == 0
                  ? uniform_below(mix_bits(bits ^ 8), len_q)
                  : edge_row(bits, len_q);
  return true;
}

}  // namespace attnguard::runtime_internal
