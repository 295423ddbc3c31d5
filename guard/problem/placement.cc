#include "guard/problem/placement.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

// The axis order of each layout, slowest first, as indices into Shape4.
constexpr std::array<std::array<int, 4>, 3> kAxisOrder = {{
    {0, 1, 2, 3},  // BHSD
    {0, 2, 1, 3},  // BSHD
    {2, 0, 1, 3},  // SBHD
}};

Shape4 dense_strides(const Shape4& shape, Layout layout) {
  Shape4 strides = {0, 0, 0, 0};
  std::int64_t stride = 1;
  const auto& order = kAxisOrder[static_cast<std::size_t>(layout)];
  for (int i = 3; i >= 0; --i) {
    strides[order[i]] = stride;
    stride *= std::max<std::int64_t>(shape[order[i]], 1);
  }
  return strides;
}

std::int64_t extent_of(const Shape4& shape, const Shape4& strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < 4; ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return last + 1;
}

bool is_query_side(TensorRole role) {
  return role == TensorRole::kQuery || role == TensorRole::kOutput;
}

std::int64_t length_of(const Problem& problem, TensorRole role,
                       std::int64_t b) {
  return is_query_side(role) ? problem.len_q(b) : problem.len_kv(b);
}

std::int64_t packed_tokens(const Problem& problem, TensorRole role) {
  std::int64_t tokens = problem.packed_padding;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    tokens += length_of(problem, role, b);
  return tokens;
}

std::int64_t blocks_of(const Problem& problem, std::int64_t b) {
  return (problem.len_kv(b) + problem.block_size - 1) / problem.block_size;
}

std::int64_t shared_blocks(const Problem& problem) {
  return problem.shared_prefix / problem.block_size;
}

std::int64_t num_blocks(const Problem& problem) {
  std::int64_t blocks = kSpareBlocks;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    blocks += blocks_of(problem, b) - (b > 0 ? shared_blocks(problem) : 0);
  return blocks;
}

// The tensor as it lies in memory: of a packed one all tokens are one entry,
// of a paged one the blocks are the entries. A value within a key has the
// key's channels.
Shape4 physical_shape(const Problem& problem, TensorRole role) {
  if (role == TensorRole::kValue && problem.value_in_key)
    role = TensorRole::kKey;
  const Shape4 shape = problem.shape(role);
  if (problem.is_paged(role))
    return {num_blocks(problem), shape[1], problem.block_size, shape[3]};
  if (problem.is_packed(role))
    return {1, shape[1], packed_tokens(problem, role), shape[3]};
  return shape;
}

void place_packed(const Problem& problem, TensorRole role,
                  Placement& placement) {
  TokenMap map;
  map.width = problem.packed_padding;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    placement.slots.push_back(length_of(problem, role, b));
    map.width = std::max(map.width, placement.slots.back());
  }
  placement.slots.push_back(problem.packed_padding);
  // Past a sequence's end lies the next one, as for a kernel that reads on.
  const std::int64_t last = packed_tokens(problem, role) - 1;
  std::int64_t token = 0;
  for (std::int64_t count : placement.slots) {
    for (std::int64_t position = 0; position < map.width; ++position)
      map.table.push_back(static_cast<std::int32_t>(
          std::max<std::int64_t>(std::min(token + position, last), 0)));
    token += count;
  }
  placement.tokens = std::make_shared<const TokenMap>(std::move(map));
}

void place_paged(const Problem& problem, Placement& placement) {
  TokenMap map;
  map.block_size = problem.block_size;
  map.width = kSpareBlocks;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    placement.slots.push_back(blocks_of(problem, b) * problem.block_size);
    map.width = std::max(map.width, blocks_of(problem, b) + 1);
  }
  placement.slots.push_back(kSpareBlocks * problem.block_size);

  std::vector<std::int32_t> ids(static_cast<std::size_t>(num_blocks(problem)));
  std::iota(ids.begin(), ids.end(), 0);
  for (std::size_t left = ids.size(); left > 1; --left)
    std::swap(ids[left - 1], ids[static_cast<std::size_t>(uniform_below(
                                 derive_seed(0x7061676573, left),
                                 static_cast<std::int64_t>(left)))]);

  std::size_t next = 0;
  const auto spare = [&](std::int64_t n) {
    return ids[ids.size() - 1 - static_cast<std::size_t>(n % kSpareBlocks)];
  };
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t k = 0; k < map.width; ++k) {
      if (k >= blocks_of(problem, b))
        map.table.push_back(spare(k));
      else if (b > 0 && k < shared_blocks(problem))
        map.table.push_back(map.table[static_cast<std::size_t>(k)]);
      else
        map.table.push_back(ids[next++]);
    }
  for (std::int64_t k = 0; k < map.width; ++k) map.table.push_back(spare(k));
  placement.tokens = std::make_shared<const TokenMap>(std::move(map));
}

}  // namespace

Placement place_tensor(const Problem& problem, TensorRole role) {
  Placement placement;
  placement.shape = problem.shape(role);
  placement.strides = problem.strides(role);
  placement.extent = problem.extent(role);
  if (problem.is_paged(role))
    place_paged(problem, placement);
  else if (problem.is_packed(role))
    place_packed(problem, role, placement);
  else
    placement.slots.assign(static_cast<std::size_t>(problem.batch),
                           placement.shape[2]);
  return placement;
}

std::vector<std::int32_t> cumulative_lengths(
    const Problem& problem, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> sums = {0};
  for (std::int64_t b = 0; b < problem.batch; ++b)
    sums.push_back(
        sums.back() +
        static_cast<std::int32_t>(
            lengths[lengths.size() == 1 ? 0 : static_cast<std::size_t>(b)]));
  return sums;
}

Shape4 layout_strides(const Problem& problem, TensorRole role) {
  Shape4 strides = dense_strides(physical_shape(problem, role), problem.layout);
  if (problem.is_packed(role)) strides[0] = strides[2];
  return strides;
}

std::int64_t tensor_extent(const Problem& problem, TensorRole role) {
  if (role == TensorRole::kValue && problem.value_in_key)
    role = TensorRole::kKey;
  const Shape4 physical = physical_shape(problem, role);
  if (problem.is_packed(role) || problem.is_paged(role))
    return extent_of(physical, dense_strides(physical, problem.layout));
  return extent_of(physical, problem.strides(role));
}

}  // namespace attnguard
