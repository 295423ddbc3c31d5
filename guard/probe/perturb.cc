#include "guard/probe/perturb.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "guard/probe/random.h"
#include "guard/probe/step.h"

namespace attnguard {
namespace {

// Largest |x| of near_normal, squared: the worst product of two elements.
constexpr double kWorstProduct = 2.45 * 2.45;

// True when some row of the entry does not see some key at or after the cut:
// perturbing keys there leaves rows that must hold.
bool some_row_holds(const Problem& problem, std::int64_t b, std::int64_t cut) {
  KeyRanges allowed;
  for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
    problem.mask.allowed(problem.row(b, i), allowed);
    if (!allowed.empty() && allowed.last() < cut) return true;
  }
  return false;
}

std::int64_t most_edges(const Problem& problem) {
  std::int64_t most = 1;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    most = std::max<std::int64_t>(
        most, static_cast<std::int64_t>(edge_cuts(problem.len_kv(b)).size()));
  return most;
}

// The cut of one slot in one round: the edges in rotation, then random ones.
std::int64_t pick_cut(const std::vector<std::int64_t>& edges,
                      std::int64_t length, std::int64_t turn,
                      std::uint64_t bits) {
  if (length < 2) return length;
  const auto count = static_cast<std::int64_t>(edges.size());
  if (turn < count) return edges[static_cast<std::size_t>(turn)];
  return 1 + uniform_below(bits, length - 1);
}

}  // namespace

std::int64_t CutAssignment::rounds_for_all_cuts(const Problem& problem) {
  return most_edges(problem);
}

std::int64_t CutAssignment::rounds_for_each_cut(const Problem& problem) {
  const std::int64_t slots = problem.batch * problem.num_kv_heads;
  return (most_edges(problem) + slots - 1) / slots;
}

CutAssignment::CutAssignment(const Problem& problem, std::int64_t round,
                             std::uint64_t seed)
    : problem_(problem), max_len_q_(problem.max_len_q()) {
  const std::int64_t slots = problem.batch * problem.num_kv_heads;
  const std::int64_t cycle = most_edges(problem);
  const std::int64_t period = cycle / std::gcd(cycle, slots);
  query_perturbed_.assign(static_cast<std::size_t>(slots * max_len_q_), 0);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t len_kv = problem.len_kv(b);
    const std::int64_t len_q = problem.len_q(b);
    const auto edges = edge_cuts(len_kv);
    const auto query_edges = edge_cuts(len_q);
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g) {
      const std::int64_t slot = b * problem.num_kv_heads + g;
      // Rounds walk through the cycle slots at a time; once a slot would meet
      // its first cut again, the walk shifts by one.
      const std::int64_t turn = (slot + round * slots + round / period) % cycle;
      const std::uint64_t bits = derive_seed(
          derive_seed(seed, 0x637574 + static_cast<std::uint64_t>(round)),
          static_cast<std::uint64_t>(slot));
      std::int64_t cut = pick_cut(edges, len_kv, turn, bits);
      const bool keys = some_row_holds(problem, b, cut);
      if (!keys) cut = len_kv;
      key_cuts_.push_back(cut);
      // Where every row sees the perturbed keys, later queries alone are
      // perturbed: no row may depend on another row's query.
      const std::int64_t query_cut =
          keys ? len_q : pick_cut(query_edges, len_q, turn, mix_bits(bits));
      for (std::int64_t i = 0; i < len_q; ++i)
        query_perturbed_[static_cast<std::size_t>(slot * max_len_q_ + i)] =
            i >= query_cut || (keys && sees_perturbed_key(b, g, i));
    }
  }
}

std::int64_t CutAssignment::key_cut(std::int64_t batch,
                                    std::int64_t kv_head) const {
  return key_cuts_[static_cast<std::size_t>(batch * problem_.num_kv_heads +
                                            kv_head)];
}

bool CutAssignment::sees_perturbed_key(std::int64_t batch, std::int64_t kv_head,
                                       std::int64_t q_index) const {
  KeyRanges allowed;
  problem_.mask.allowed(problem_.row(batch, q_index), allowed);
  return !allowed.empty() && allowed.last() >= key_cut(batch, kv_head);
}

bool CutAssignment::perturbs_anything() const {
  for (std::int64_t b = 0; b < problem_.batch; ++b)
    for (std::int64_t g = 0; g < problem_.num_kv_heads; ++g)
      if (key_cut(b, g) < problem_.len_kv(b)) return true;
  return std::find(query_perturbed_.begin(), query_perturbed_.end(), 1) !=
         query_perturbed_.end();
}

bool CutAssignment::query_perturbed(std::int64_t batch, std::int64_t head,
                                    std::int64_t q_index) const {
  const std::int64_t slot =
      batch * problem_.num_kv_heads + problem_.kv_head_of(head);
  return query_perturbed_[static_cast<std::size_t>(slot * max_len_q_ +
                                                   q_index)] != 0;
}

double extreme_amplitude(const Problem& problem, const Numerics& numerics) {
  const double limit =
      std::min(dtype_info(numerics.score).max_finite / 4, 1e30);
  double amplitude = 64;
  const double worst = kWorstProduct *
                       static_cast<double>(problem.head_dim_qk) *
                       std::max(problem.scale(), 1.0);
  while (amplitude > 1 && amplitude * amplitude * worst > limit) amplitude /= 2;
  return amplitude;
}

void PerturbedScores::query_row(std::int64_t batch, std::int64_t head,
                                std::int64_t q_index, double* to) const {
  const Problem& problem = cuts_->problem();
  const bool fresh = q_index < problem.len_q(batch) &&
                     cuts_->query_perturbed(batch, head, q_index);
  fill_random_row(fresh ? fresh_seed_ : base_seed_, TensorRole::kQuery, batch,
                  head, q_index, fresh ? amplitude_ : 1, problem.head_dim_qk,
                  to);
}

void PerturbedScores::key_row(std::int64_t batch, std::int64_t kv_head,
                              std::int64_t kv_index, double* to) const {
  const Problem& problem = cuts_->problem();
  const bool fresh = kv_index < problem.len_kv(batch) &&
                     kv_index >= cuts_->key_cut(batch, kv_head);
  fill_random_row(fresh ? fresh_seed_ : base_seed_, TensorRole::kKey, batch,
                  kv_head, kv_index, fresh ? amplitude_ : 1,
                  problem.head_dim_qk, to);
}

void PerturbedValues::value_row(std::int64_t batch, std::int64_t kv_head,
                                std::int64_t kv_index, double* to) const {
  const Problem& problem = cuts_->problem();
  const bool fresh = kv_index < problem.len_kv(batch) &&
                     kv_index >= cuts_->key_cut(batch, kv_head);
  fill_random_row(fresh ? fresh_seed_ : base_seed_, TensorRole::kValue, batch,
                  kv_head, kv_index, fresh ? amplitude_ : 1, problem.head_dim_v,
                  to);
}

}  // namespace attnguard
