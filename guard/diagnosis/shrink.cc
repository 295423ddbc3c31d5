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

std::int64_t size_of(const Problem& p) {
  return p.extent(TensorRole::kQuery) + p.extent(TensorRole::kKey) +
         p.extent(TensorRole::kValue);
}

// Valid problems other than the original, each once.
class Candidates {
 public:
  explicit Candidates(const Problem& original) : original_(original) {}

  void add(Problem candidate) {
    candidate.query_strides.reset();
    candidate.key_strides.reset();
    candidate.value_strides.reset();
    candidate.output_strides.reset();
    candidate.mask = candidate.mask.shrunk_to(candidate);
    if (candidate == original_ || !candidate.validate().ok()) return;
    if (std::find(found_.begin(), found_.end(), candidate) == found_.end())
      found_.push_back(std::move(candidate));
  }

  void keep_smaller() {
    const std::int64_t size = size_of(original_);
    std::erase_if(found_, [&](const Problem& p) { return size_of(p) >= size; });
  }

  std::vector<Problem> take_sorted() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Problem& a, const Problem& b) {
                       return size_of(a) < size_of(b);
                     });
    return std::move(found_);
  }

 private:
  const Problem& original_;
  std::vector<Problem> found_;
};

// Lengths between the smallest one and `length`: half of what can go, a
// quarter, and so on to one token.
std::vector<std::int64_t> shorter_lengths(std::int64_t length) {
  std::vector<std::int64_t> shorter;
  for (std::int64_t cut = (length - kLengths[0] + 1) / 2; cut > 0; cut /= 2)
    shorter.push_back(length - cut);
  return shorter;
}

void add_shorter(const Problem& problem, Candidates& candidates) {
  const std::int64_t longest =
      std::max(problem.max_len_q(), problem.max_len_kv());
  for (std::int64_t length : shorter_lengths(longest)) {
    Problem both = problem;
    both.seq_len_q = cut_lengths(problem.seq_len_q, length, false);
    both.seq_len_kv = cut_lengths(problem.seq_len_kv, length, false);
    candidates.add(std::move(both));
  }
  for (std::int64_t length : shorter_lengths(problem.max_len_q())) {
    Problem fewer = problem;
    fewer.seq_len_q = cut_lengths(problem.seq_len_q, length, false);
    candidates.add(std::move(fewer));
  }
  for (std::int64_t length : shorter_lengths(problem.max_len_kv())) {
    Problem fewer = problem;
    fewer.seq_len_kv = cut_lengths(problem.seq_len_kv, length, false);
    candidates.add(std::move(fewer));
  }
}

void add_narrower(const Problem& problem, Candidates& candidates) {
  for (std::int64_t heads : {std::int64_t{1}, problem.num_kv_heads / 2}) {
    Problem fewer = problem;
    fewer.num_kv_heads = std::max<std::int64_t>(heads, 1);
    fewer.num_heads = fewer.num_kv_heads * problem.group_size();
    fewer.sinks.resize(std::min(fewer.sinks.size(),
                                static_cast<std::size_t>(fewer.num_heads)));
    candidates.add(std::move(fewer));
  }
  Problem single = problem;
  single.num_heads = problem.num_kv_heads;
  single.sinks.resize(std::min(single.sinks.size(),
                               static_cast<std::size_t>(single.num_heads)));
  candidates.add(std::move(single));
  for (std::int64_t divisor : {4, 2}) {
    Problem narrow = problem;
    const auto cut = [&](std::int64_t dim) {
      return std::min(dim, std::max(kSmallHeadDim, dim / divisor));
    };
    narrow.head_dim_qk = cut(problem.head_dim_qk);
    narrow.head_dim_v = cut(problem.head_dim_v);
    candidates.add(std::move(narrow));
  }
}

}  // namespace

std::vector<Problem> shrink_candidates(const Problem& problem) {
  Candidates candidates(problem);
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
        candidates.add(candidate);
        if (!single) continue;
        candidate.num_heads = 1;
        candidates.add(candidate);
      }
    }
  }
  return candidates.take_sorted();
}

std::vector<Problem> shrink_steps(const Problem& problem) {
  Candidates candidates(problem);
  add_shorter(problem, candidates);
  add_narrower(problem, candidates);
  for (std::int64_t b = 0; problem.batch > 1 && b < problem.batch; ++b) {
    Problem alone = problem;
    alone.batch = 1;
    alone.seq_len_q = {problem.len_q(b)};
    alone.seq_len_kv = {problem.len_kv(b)};
    candidates.add(std::move(alone));
  }
  candidates.keep_smaller();
  return candidates.take_sorted();
}

}  // namespace attnguard
