// A random grid of problems that mixes every dtype, mask kind and layout with
// grouped heads, ragged and zero lengths, padded strides and tile edges.
#ifndef ATTNGUARD_TESTS_ADAPTERS_PLAIN_RANDOM_PROBLEMS_H_
#define ATTNGUARD_TESTS_ADAPTERS_PLAIN_RANDOM_PROBLEMS_H_

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "guard/base/rng.h"
#include "guard/problem/problem.h"

namespace attnguard {

// A mask that holds lists of numbers, for sequences of at least `shortest`
// keys; "full" where there is no room for one.
inline std::string random_list_mask(std::int64_t kind, std::int64_t shortest) {
  const std::string third = std::to_string(shortest / 3);
  switch (kind) {
    case 0:
      return "causal_bottom_right+documents(lengths=" + third + ":0:" + third +
             ")";
    case 1:
      return "left_padding(pad=" + third + ")";
    case 2:
      return "left_padding_keys(pad=" + third + ")";
    case 3:
      return "chunked_local_from_padding(chunk=9,pad=" + third + ")";
    case 4:
      return "bidirectional_spans(begin=" + third +
             ",length=" + std::to_string(shortest / 2) + ")";
    default:
      return shortest < 6 ? "full" : "tree(parents=-1:0:0:1:-1:2)";
  }
}

// The problem of one seed; the same seed gives the same problem.
inline Problem random_problem(std::uint64_t seed) {
  std::uint64_t draws = 0;
  const auto below = [&](std::int64_t bound) {
    return uniform_below(derive_seed(seed, ++draws), bound);
  };
  constexpr std::array<std::int64_t, 14> kLengths = {
      0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 100, 129, 150};
  constexpr std::array<std::int64_t, 8> kDims = {1, 3, 8, 16, 17, 24, 64, 80};
  constexpr std::int64_t kListMasks = 6;
  constexpr std::array<std::string_view, 16> kMasks = {
      "full",
      "causal_top_left",
      "causal_bottom_right",
      "prefix_lm(prefix=5)",
      "sliding_window(left=4,right=0)",
      "sliding_window(left=-1,right=3)",
      "sliding_window(left=70,right=2)",
      "sliding_window_top_left(left=2,right=2)",
      "causal_top_left+sliding_window_top_left(left=9,right=-1)",
      "causal_bottom_right+sliding_window(left=66,right=0)",
      "prefix_lm(prefix=40)+sliding_window(left=1,right=0)",
      "sliding_window_keys(keys=5)",
      "sliding_window_two_sided(width=33)",
      "window_symmetric(width=9)",
      "encoder_window(width=40)",
      "causal_bottom_right+chunked_local(chunk=32)"};
  const auto pick = [&](const auto& from) {
    return from[static_cast<std::size_t>(
        below(static_cast<std::int64_t>(from.size())))];
  };

  Problem problem;
  problem.batch = 1 + below(3);
  problem.num_kv_heads = 1 + below(3);
  problem.num_heads = problem.num_kv_heads * (1 + below(3));
  const std::int64_t entries = below(2) ? problem.batch : 1;
  problem.seq_len_q.clear();
  problem.seq_len_kv.clear();
  for (std::int64_t b = 0; b < entries; ++b) {
    problem.seq_len_q.push_back(pick(kLengths));
    problem.seq_len_kv.push_back(pick(kLengths));
  }
  problem.head_dim_qk = pick(kDims);
  problem.head_dim_v = pick(kDims);
  problem.dtype = static_cast<Dtype>(below(4));
  if (below(3) == 0) problem.out_dtype = static_cast<Dtype>(below(4));
  if (below(3) == 0) problem.softmax_scale = 0.3;
  const std::int64_t mask =
      below(static_cast<std::int64_t>(kMasks.size()) + kListMasks);
  problem.mask =
      Mask::parse(
          mask < kListMasks
              ? random_list_mask(mask,
                                 *std::min_element(problem.seq_len_kv.begin(),
                                                   problem.seq_len_kv.end()))
              : std::string(
                    kMasks[static_cast<std::size_t>(mask - kListMasks)]))
          .value();
  problem.layout = static_cast<Layout>(below(3));
  const auto padded = [&](TensorRole role) {
    const Shape4 shape = problem.shape(role);
    const std::int64_t step = 1 + below(2);  // between channels
    const std::int64_t row = shape[3] * step + 5;
    const std::int64_t head = row * std::max<std::int64_t>(shape[2], 1) + 3;
    return Shape4{head * shape[1] + 1, head, row, step};
  };
  if (below(3) == 0) problem.query_strides = padded(TensorRole::kQuery);
  if (below(3) == 0) problem.key_strides = padded(TensorRole::kKey);
  if (below(3) == 0) problem.value_strides = padded(TensorRole::kValue);
  if (below(3) == 0) problem.output_strides = padded(TensorRole::kOutput);
  return problem;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_PLAIN_RANDOM_PROBLEMS_H_
