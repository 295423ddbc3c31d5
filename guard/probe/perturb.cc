#include "guard/probe/perturb.h"

#include <algorithm>
#include <numeric>

#include "guard/base/rng.h"
#include "guard/probe/step.h"

namespace attnguard {
namespace {

// Random cuts beside the edges.
constexpr int kRandomCuts = 2;

// The cuts of one sequence of `length` places that leave something on both
// sides, when the earliest row ends with place `first_last`: the first such
// cut, the last, tile edges, then random ones. Empty when there is none.
std::vector<std::int64_t> useful_cuts(std::int64_t first_last,
                                      std::int64_t length, std::uint64_t seed) {
  std::vector<std::int64_t> cuts;
  const auto add = [&](std::int64_t cut) {
    if (cut > first_last && cut < length &&
        std::find(cuts.begin(), cuts.end(), cut) == cuts.end())
      cuts.push_back(cut);
  };
  add(first_last + 1);
  add(length - 1);
  for (std::int64_t cut : edge_cuts(length)) add(cut);
  for (int n = 0; n < kRandomCuts && first_last + 1 < length; ++n)
    add(first_last + 1 +
        uniform_below(derive_seed(seed, static_cast<std::uint64_t>(n)),
                      length - first_last - 1));
  return cuts;
}

// The smallest last key of any row: keys after it are hidden from some row.
// The entry's seq_len_kv when no row has a key.
std::int64_t first_last_key(const Problem& problem, std::int64_t b) {
  std::int64_t smallest = problem.len_kv(b);
  KeyRanges allowed;
  for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
    problem.mask.allowed(problem.row(b, i), allowed);
    if (!allowed.empty()) smallest = std::min(smallest, allowed.last());
  }
  return smallest;
}

struct EntryCuts {
  std::vector<std::int64_t> keys;     // Empty: every row sees the last key.
  std::vector<std::int64_t> queries;  // Used where there are no key cuts.
};

EntryCuts entry_cuts(const Problem& problem, std::int64_t b,
                     std::uint64_t seed) {
  return {useful_cuts(first_last_key(problem, b), problem.len_kv(b), seed),
          useful_cuts(0, problem.len_q(b), mix_bits(seed))};
}

std::int64_t most_cuts(const Problem& problem, std::uint64_t seed) {
  std::size_t most = 1;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const EntryCuts cuts = entry_cuts(problem, b, seed);
    most = std::max({most, cuts.keys.size(), cuts.queries.size()});
  }
  return static_cast<std::int64_t>(most);
}

}  // namespace

std::int64_t CutAssignment::rounds_for_all_cuts(const Problem& problem,
                                                std::uint64_t seed) {
  return most_cuts(problem, seed);
}

std::int64_t CutAssignment::rounds_for_each_cut(const Problem& problem,
                                                std::uint64_t seed) {
  const std::int64_t slots = problem.batch * problem.num_kv_heads;
  return (most_cuts(problem, seed) + slots - 1) / slots;
}

CutAssignment::CutAssignment(const Problem& problem, std::int64_t round,
                             std::uint64_t seed)
    : TokenSet(problem), max_len_q_(problem.max_len_q()) {
  const std::int64_t slots = problem.batch * problem.num_kv_heads;
  const std::int64_t cycle = most_cuts(problem, seed);
  const std::int64_t period = cycle / std::gcd(cycle, slots);
  query_perturbed_.assign(static_cast<std::size_t>(slots * max_len_q_), 0);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const EntryCuts cuts = entry_cuts(problem, b, seed);
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g) {
      const std::int64_t slot = b * problem.num_kv_heads + g;
      // Rounds walk through the cycle slots at a time; once a slot would meet
      // its first cut again, the walk shifts by one.
      const auto turn = static_cast<std::size_t>(
          (slot + round * slots + round / period) % cycle);
      const bool keys = !cuts.keys.empty();
      key_cuts_.push_back(keys ? cuts.keys[turn % cuts.keys.size()]
                               : problem.len_kv(b));
      // Where every row sees every key, later queries alone are perturbed: no
      // row may depend on another row's query.
      const std::int64_t query_cut =
          keys || cuts.queries.empty()
              ? problem.len_q(b)
              : cuts.queries[turn % cuts.queries.size()];
      for (std::int64_t i = 0; i < problem.len_q(b); ++i)
        query_perturbed_[static_cast<std::size_t>(slot * max_len_q_ + i)] =
            i >= query_cut || (keys && sees_perturbed_key(b, g, i));
    }
  }
}

std::int64_t CutAssignment::key_cut(std::int64_t batch,
                                    std::int64_t kv_head) const {
  return key_cuts_[static_cast<std::size_t>(batch * problem().num_kv_heads +
                                            kv_head)];
}

bool CutAssignment::sees_perturbed_key(std::int64_t batch, std::int64_t kv_head,
                                       std::int64_t q_index) const {
  if (problem().shared_prefix > 0)
    return TokenSet::sees_perturbed_key(batch, kv_head, q_index);
  KeyRanges allowed;
  problem().mask.allowed(problem().row(batch, q_index), allowed);
  return !allowed.empty() && allowed.last() >= key_cut(batch, kv_head);
}

bool CutAssignment::perturbs_anything() const {
  for (std::int64_t b = 0; b < problem().batch; ++b)
    for (std::int64_t g = 0; g < problem().num_kv_heads; ++g)
      if (key_cut(b, g) < problem().len_kv(b)) return true;
  return std::find(query_perturbed_.begin(), query_perturbed_.end(), 1) !=
         query_perturbed_.end();
}

bool CutAssignment::query_perturbed(std::int64_t batch, std::int64_t head,
                                    std::int64_t q_index) const {
  const std::int64_t slot =
      batch * problem().num_kv_heads + problem().kv_head_of(head);
  return query_perturbed_[static_cast<std::size_t>(slot * max_len_q_ +
                                                   q_index)] != 0;
}

}  // namespace attnguard
