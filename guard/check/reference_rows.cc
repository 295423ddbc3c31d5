#include "guard/check/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"
#include "guard/probe/step.h"

namespace attnguard {
namespace {

// Multiply-adds that the reference may cost on one problem, about 10 ms.
constexpr double kBudget = 2e7;
constexpr std::int64_t kFewestRows = 32;  // of a whole budget

// Multiply-adds of one row.
double row_cost(const Problem& problem) {
  return static_cast<double>(problem.max_len_kv()) *
         static_cast<double>(problem.head_dim_qk + 2 * problem.head_dim_v);
}

bool has_keys(const Problem& problem, const RowIndex& row) {
  if (row.query >= problem.len_q(row.batch)) return false;
  KeyRanges allowed;
  problem.mask.allowed(problem.row(row.batch, row.query), allowed);
  return !allowed.empty();
}

// One row under the check's tolerance.
class RowJudge {
 public:
  RowJudge(const CheckContext& context, const Observation& seen, Scores scores)
      : context_(context),
        seen_(seen),
        problem_(*seen.problem),
        scores_(scores) {}

  std::optional<Finding> judge(const RowIndex& place,
                               const ReferenceRow& row) const {
    std::vector<double> output(static_cast<std::size_t>(problem_.head_dim_v));
    seen_.output.load_row(place.batch, place.head, place.query, 0,
                          problem_.head_dim_v, output.data());
    std::int64_t worst = -1;
    double worst_excess = 0;
    for (std::int64_t c = 0; c < problem_.head_dim_v; ++c) {
      const double difference =
          std::abs(output[static_cast<std::size_t>(c)] - expected(row, c));
      const double bound = bound_for(row, c);
      if (difference <= bound) continue;
      const double excess = difference / std::max(bound, 1e-300);
      if (worst >= 0 && !(excess > worst_excess)) continue;
      worst = c;
      worst_excess = excess;
    }
    if (worst < 0) return std::nullopt;
    Finding finding{.kind = FindingKind::kValue,
                    .probe = seen_.planned->scores->name(),
                    .batch = place.batch,
                    .head = place.head,
                    .query = place.query,
                    .channel = worst,
                    .observed = output[static_cast<std::size_t>(worst)],
                    .expected = expected(row, worst),
                    .bound = bound_for(row, worst)};
    finding.message =
        row_name(place.batch, place.head, place.query) + ": output channel " +
        std::to_string(worst) + " is " + format_short(finding.observed) +
        ", fp64 attention gives " + format_short(finding.expected) +
        " (rounding explains " + format_short(finding.bound) + ")";
    return finding;
  }

 private:
  double expected(const ReferenceRow& row, std::int64_t c) const {
    const double value = row.output[static_cast<std::size_t>(c)];
    return context_.tolerance.kind == Tolerance::Kind::kExact
               ? quantize(problem_.output_dtype(), value)
               : value;
  }

  double bound_for(const ReferenceRow& row, std::int64_t c) const {
    switch (context_.tolerance.kind) {
      case Tolerance::Kind::kExact:
        return 0;
      case Tolerance::Kind::kNumber:
        return context_.tolerance.number;
      case Tolerance::Kind::kAuto:
        break;
    }
    const double bound = reference_bound(problem_, context_.numerics, row, c);
    if (scores_ == Scores::kUsual || row.num_keys == 0) return bound;
    const double merged =
        8 * unit_roundoff(context_.numerics.accumulator) * row.max_abs_score;
    const double weighted = row.weighted_abs[static_cast<std::size_t>(c)];
    // Scores of a narrow accumulator may be wrong by any factor; of nothing.
    if (weighted == 0) return 2 * bound;
    return 2 * bound + std::expm1(merged) * weighted;
  }

  const CheckContext& context_;
  const Observation& seen_;
  const Problem& problem_;
  Scores scores_;
};

}  // namespace

std::string RowChoice::coverage() const {
  return all() ? "every row"
               : std::to_string(rows.size()) + " of " + std::to_string(of) +
                     " rows";
}

RowChoice choose_rows(const Problem& problem, Coverage coverage,
                      std::uint64_t seed, double share, std::int64_t turn) {
  RowChoice choice;
  for_each_row(problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                            const KeyRanges&) {
    choice.rows.push_back({b, h, i});
  });
  choice.of = static_cast<std::int64_t>(choice.rows.size());
  const double budget =
      share * kBudget * (coverage == Coverage::kFull ? 16 : 1);
  const auto affordable = std::max(
      static_cast<std::int64_t>(budget / std::max(row_cost(problem), 1.0)),
      std::max<std::int64_t>(static_cast<std::int64_t>(share * kFewestRows),
                             8));
  if (choice.of <= affordable) return choice;
  std::set<RowIndex> chosen;
  std::int64_t head = turn;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    std::vector<std::int64_t> edges = edge_cuts(problem.len_q(b));
    edges.push_back(0);
    for (std::int64_t edge : edges) {
      const RowIndex row{b, head++ % problem.num_heads, edge};
      if (static_cast<std::int64_t>(chosen.size()) < affordable / 2 &&
          has_keys(problem, row))
        chosen.insert(row);
    }
  }
  for (std::uint64_t draw = 0;
       static_cast<std::int64_t>(chosen.size()) < affordable; ++draw) {
    const std::uint64_t bits =
        derive_seed(base_seed(seed) ^ 0x726566,
                    draw ^ static_cast<std::uint64_t>(turn) << 32);
    chosen.insert(
        choice.rows[static_cast<std::size_t>(uniform_below(bits, choice.of))]);
  }
  choice.rows.assign(chosen.begin(), chosen.end());
  return choice;
}

void for_each_reference_row(
    const Observation& seen, const RowChoice& choice,
    const std::function<void(std::size_t, const ReferenceRow&)>& judge) {
  const ReferenceInputs given{seen.problem, seen.query, seen.key, seen.value};
  // Decoding every key once pays when each is read by several rows.
  std::optional<DecodedInputs> decoded;
  if (choice.all()) decoded.emplace(given);
  const ReferenceInputs inputs = decoded ? decoded->inputs() : given;
  // Waking the other threads costs more than a small problem's rows.
  const double products =
      static_cast<double>(choice.rows.size()) * row_cost(*seen.problem);
#pragma omp parallel if (products > 2e6)
  {
    ReferenceRow row;
#pragma omp for schedule(dynamic)
    for (std::size_t n = 0; n < choice.rows.size(); ++n) {
      const RowIndex& at = choice.rows[n];
      reference_row(inputs, at.batch, at.head, at.query, row);
      judge(n, row);
    }
  }
}

void judge_rows(const CheckContext& context, const Observation& seen,
                const RowChoice& choice, Scores scores, FindingSink& sink) {
  const RowJudge judge(context, seen, scores);
  std::vector<std::optional<Finding>> found(choice.rows.size());
  for_each_reference_row(seen, choice,
                         [&](std::size_t n, const ReferenceRow& row) {
                           found[n] = judge.judge(choice.rows[n], row);
                         });
  for (std::optional<Finding>& finding : found)
    if (finding) sink.add(std::move(*finding));
}

}  // namespace attnguard
