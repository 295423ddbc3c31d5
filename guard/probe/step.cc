#include "guard/probe/step.h"

#include <algorithm>
#include <set>

#include "guard/base/rng.h"

namespace attnguard {

std::vector<std::int64_t> edge_cuts(std::int64_t length) {
  std::set<std::int64_t> cuts;
  const auto add = [&](std::int64_t cut) {
    if (cut >= 1 && cut < length) cuts.insert(cut);
  };
  add(1);
  add(length - 1);
  for (std::int64_t edge = 16; edge <= 256; edge *= 2)
    for (std::int64_t side : {-1, 0, 1}) add(edge + side);
  const std::int64_t last_tile = (length - 1) / 128 * 128;
  for (std::int64_t side : {-1, 0, 1}) add(last_tile + side);
  return {cuts.begin(), cuts.end()};
}

StepValues::StepValues(const Problem& problem, std::int64_t columns,
                       std::int64_t down_columns, std::uint64_t seed)
    : columns_(columns),
      down_columns_(down_columns),
      num_kv_heads_(problem.num_kv_heads) {
  seed = derive_seed(seed, 0x73746570);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t length = problem.len_kv(b);
    const std::vector<std::int64_t> edges = edge_cuts(length);
    for (std::int64_t g = 0; g < num_kv_heads_; ++g) {
      const std::int64_t slot = b * num_kv_heads_ + g;
      for (std::int64_t c = 0; c < columns; ++c) {
        // Three columns in four meet the edges, rotated by slot.
        const std::size_t turn = static_cast<std::size_t>(slot * columns + c);
        const std::uint64_t bits = derive_seed(seed, turn);
        std::int64_t cut = 0;
        if (!edges.empty() && c % 4 != 3)
          cut = edges[turn % edges.size()];
        else if (length > 1)
          cut = 1 + uniform_below(bits, length - 1);
        thresholds_.push_back(cut);
      }
    }
  }
}

void StepValues::value_row(std::int64_t batch, std::int64_t kv_head,
                           std::int64_t kv_index, double* to) const {
  const std::int64_t* cuts = &thresholds_[static_cast<std::size_t>(
      (batch * num_kv_heads_ + kv_head) * columns_)];
  const std::int64_t up = columns_ - down_columns_;
  for (std::int64_t c = 0; c < up; ++c) to[c] = kv_index >= cuts[c] ? 1 : 0;
  for (std::int64_t c = up; c < columns_; ++c)
    to[c] = kv_index <= cuts[c] ? 1 : 0;
}

}  // namespace attnguard
