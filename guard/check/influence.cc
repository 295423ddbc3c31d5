// What future-influence and amplitude share: rounds of cuts in which later
// tokens get fresh values, and rows that must hold.
#include "guard/check/influence.h"

#include <algorithm>

#include "guard/check/baseline.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/perturb.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

constexpr std::int64_t kMostRoundsEdges = 4;
constexpr std::int64_t kMostRoundsFull = 64;

// Values of perturbed tokens in the extreme rounds: 2^10 times the usual.
constexpr double kExtremeValues = 1024;

std::int64_t rounds_for(const CheckContext& context) {
  const Problem& problem = context.problem;
  switch (context.coverage) {
    case Coverage::kSampled:
      return 1;
    case Coverage::kEdges:
      return std::min(CutAssignment::rounds_for_each_cut(problem, context.seed),
                      kMostRoundsEdges);
    case Coverage::kFull:
      break;
  }
  return std::min(CutAssignment::rounds_for_all_cuts(problem, context.seed),
                  kMostRoundsFull);
}

// How many rows must hold, and how many can move, under the cuts.
struct RowCounts {
  std::int64_t hold = 0;
  std::int64_t move = 0;
};

// A row with a single key shows that key's value whatever its query is.
bool can_move(const CutAssignment& cuts, std::int64_t b, std::int64_t h,
              std::int64_t i, const KeyRanges& allowed) {
  return allowed.count() > 1 ||
         cuts.sees_perturbed_key(b, cuts.problem().kv_head_of(h), i);
}

RowCounts count_rows(const CutAssignment& cuts) {
  RowCounts counts;
  if (!cuts.perturbs_anything()) return counts;
  for_each_row(cuts.problem(), [&](std::int64_t b, std::int64_t h,
                                   std::int64_t i, const KeyRanges& allowed) {
    if (cuts.must_hold(b, h, i))
      ++counts.hold;
    else if (can_move(cuts, b, h, i, allowed))
      ++counts.move;
  });
  return counts;
}

class Influence final : public Check {
 public:
  Influence(const CheckContext& context, Amplitude amplitude)
      : context_(context),
        extreme_(amplitude == Amplitude::kExtreme),
        heads_(static_cast<std::size_t>(context.problem.batch *
                                        context.problem.num_heads)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    base_.plan(plan, context_);
    const std::int64_t rounds = rounds_for(context_);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const auto cuts =
          std::make_shared<CutAssignment>(problem, round, context_.seed);
      const RowCounts counts = count_rows(*cuts);
      if (counts.hold == 0) continue;
      plan_round(plan, cuts, round);
      if (counts.move > 0) ++rounds_that_move_;
    }
    // Where no row sees a perturbed token, other inputs altogether are the
    // positive control: every row may move.
    if (rounds_that_move_ == 0) base_.plan_control(plan, context_);
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    base_.judge(seen);
    for (const Round& round : rounds_)
      if (seen.call == round.ticket.call) judge_round(seen, round, sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    if (!base_.too_noisy(result)) {
      conclude(sink,
               judged_ > 0 && controls_fired_ &&
                   rows_moved_ + base_.rows_moved_by_control() > 0,
               "rows of some head that see the changed tokens did not move, so "
               "the engine does not react to its inputs",
               result);
    }
    result.coverage = std::to_string(judged_) + " perturbed calls, " +
                      std::to_string(rows_held_) + " rows that must hold, " +
                      std::to_string(rows_moved_) + " rows moved";
  }

 private:
  struct Round {
    CutAssignmentPtr cuts;
    Ticket ticket;
  };

  std::size_t head_slot(std::int64_t b, std::int64_t h) const {
    return static_cast<std::size_t>(b * context_.problem.num_heads + h);
  }

  void plan_round(Plan& plan, const CutAssignmentPtr& cuts,
                  std::int64_t round) {
    Perturbation how;
    how.label = "perturb-" + std::to_string(round) +
                (extreme_ ? "-extreme" : "-moderate");
    how.base_seed = base_seed(context_.seed);
    how.fresh_seed =
        derive_seed(how.base_seed,
                    2 * static_cast<std::uint64_t>(round) + (extreme_ ? 2 : 1));
    if (extreme_) {
      how.score_amplitude =
          extreme_amplitude(context_.problem, context_.numerics);
      // A value within the key is a part of the scores too.
      how.value_amplitude =
          context_.problem.value_in_key ? how.score_amplitude : kExtremeValues;
    }
    rounds_.push_back({cuts, plan.request(perturbed_scores(cuts, how),
                                          perturbed_values(cuts, how))});
  }

  void judge_round(const Observation& seen, const Round& round,
                   FindingSink& sink) {
    const CutAssignment& cuts = *round.cuts;
    std::vector<char> may_move(heads_.size(), 0), moved(heads_.size(), 0);
    for_each_row(context_.problem,
                 [&](std::int64_t b, std::int64_t h, std::int64_t i,
                     const KeyRanges& allowed) {
                   const bool hold = cuts.must_hold(b, h, i);
                   const std::size_t slot = head_slot(b, h);
                   if (hold)
                     ++rows_held_;
                   else
                     may_move[slot] |= can_move(cuts, b, h, i, allowed);
                   // Noise is no movement, neither for a finding nor for the
                   // control.
                   double change = 0;
                   if (!base_.moved(seen, b, h, i, change)) return;
                   if (!hold) {
                     moved[slot] = 1;
                     ++rows_moved_;
                     return;
                   }
                   report(seen, cuts, b, h, i, change, base_.limit(), sink);
                 });
    ++judged_;
    for (std::size_t slot = 0; slot < moved.size(); ++slot)
      if (may_move[slot] && !moved[slot]) controls_fired_ = false;
  }

  void report(const Observation& seen, const CutAssignment& cuts,
              std::int64_t b, std::int64_t h, std::int64_t i, double change,
              double limit, FindingSink& sink) {
    const Problem& problem = context_.problem;
    const std::int64_t cut = cuts.key_cut(b, problem.kv_head_of(h));
    const bool keys = cut < problem.len_kv(b);
    Finding finding{.kind = FindingKind::kLeak,
                    .probe = seen.planned->scores->name(),
                    .batch = b,
                    .head = h,
                    .query = i,
                    .key = keys ? cut : -1,
                    .observed = change,
                    .bound = limit};
    finding.message = row_name(b, h, i) + ": output moves by " +
                      format_short(change) +
                      (keys ? " when tokens >= " + std::to_string(cut) +
                                  " change, none of which it may see"
                            : std::string(" when other rows' queries change"));
    sink.add(std::move(finding));
  }

  CheckContext context_;
  bool extreme_;
  std::vector<char> heads_;  // One slot per (batch, head).
  Baseline base_;
  std::vector<Round> rounds_;
  std::int64_t judged_ = 0;
  std::int64_t rounds_that_move_ = 0;
  bool controls_fired_ = true;
  std::int64_t rows_held_ = 0;
  std::int64_t rows_moved_ = 0;
};

}  // namespace

std::string no_cut(const CheckContext& context) {
  const std::int64_t rounds = rounds_for(context);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const CutAssignment cuts(context.problem, round, context.seed);
    const RowCounts counts = count_rows(cuts);
    if (counts.hold > 0) return "";
  }
  return "no row is shielded from any token: every row sees the last key, and "
         "there is no second query";
}

std::unique_ptr<Check> make_influence(const CheckContext& context,
                                      Amplitude amplitude) {
  return std::make_unique<Influence>(context, amplitude);
}

}  // namespace attnguard
