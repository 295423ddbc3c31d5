#include "guard/diagnosis/shrink.h"

#include <algorithm>

namespace attnguard {
namespace {

// Lengths tried in turn. 5 draws a map that fits on a postcard; the others
// are just beyond the usual tiles.
constexpr std::int64_t kLengths[] = {5, 9, 17, 33, 65, 129, 257};
constexpr std::int64_t kSmallHeadDim = 16;

// One length for a sequence that was `length` long: longer ones are cut,
// shorter stay, so that seq_len_q < seq_len_kv keeps its sense.
std::vector<std::int64_t> cut_lengths(const std::vector<std::int64_t>& lengths,
                                      std::int64_t most, bool first_only) {
  std::vector<std::int64_t> cut;
  for (std::int64_t length : lengths) cut.push_back(std::min(length, most));
  if (first_only) cut.resize(1);
  return cut;
}

}  // namespace

std::vector<Problem> shrink_candidates(const Problem& problem) {
  std::vector<Problem> candidates;
  const auto add = [&](Problem candidate) {
    candidate.query_strides.reset();
    candidate.key_strides.reset();
    candidate.value_strides.reset();
    candidate.output_strides.reset();
    candidate.mask = candidate.mask.shrunk_to(candidate);
    if (candidate == problem || !candidate.validate().ok()) return;
    if (std::find(candidates.begin(), candidates.end(), candidate) ==
        candidates.end())
      candidates.push_back(std::move(candidate));
  };
  for (std::int64_t length : kLengths) {
    for (bool single : {true, false}) {
      for (bool narrow : {true, false}) {
        Problem candidate = problem;
        if (single) {
          candidate.batch = 1;
          candidate.num_heads = problem.group_size();
          candidate.num_kv_heads = 1;
        }
        if (narrow) {
          candidate.head_dim_qk = std::min(problem.head_dim_qk, kSmallHeadDim);
          candidate.head_dim_v = std::min(problem.head_dim_v, kSmallHeadDim);
        }
        candidate.seq_len_q = cut_lengths(problem.seq_len_q, length, single);
        candidate.seq_len_kv = cut_lengths(problem.seq_len_kv, length, single);
        add(candidate);
        if (!single) continue;
        candidate.num_heads = 1;
        add(candidate);
      }
    }
  }
  const auto size = [](const Problem& p) {
    return p.extent(TensorRole::kQuery) + p.extent(TensorRole::kKey) +
           p.extent(TensorRole::kValue);
  };
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [&](const Problem& a, const Problem& b) { return size(a) < size(b); });
  return candidates;
}

}  // namespace attnguard
