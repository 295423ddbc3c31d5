// future-influence: what a row may not see does not move it.
#include <algorithm>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/perturb.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

constexpr std::int64_t kMostRoundsEdges = 4;
constexpr std::int64_t kMostRoundsFull = 64;

// Noise of an engine that declares itself non-deterministic, on values of
// about 1: beyond this comparisons say nothing.
constexpr double kMostNoise = 0.05;

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
              const KeyRanges& allowed) {
  return allowed.count() > 1 ||
         allowed.last() >= cuts.key_cut(b, cuts.problem().kv_head_of(h));
}

RowCounts count_rows(const CutAssignment& cuts) {
  RowCounts counts;
  if (!cuts.perturbs_anything()) return counts;
  for_each_row(cuts.problem(), [&](std::int64_t b, std::int64_t h,
                                   std::int64_t i, const KeyRanges& allowed) {
    if (cuts.must_hold(b, h, i))
      ++counts.hold;
    else if (can_move(cuts, b, h, allowed))
      ++counts.move;
  });
  return counts;
}

class FutureInfluence final : public Check {
 public:
  explicit FutureInfluence(const CheckContext& context)
      : context_(context),
        heads_(static_cast<std::size_t>(context.problem.batch *
                                        context.problem.num_heads)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    const auto scores = std::make_shared<RandomScores>(problem, seed);
    const auto values = std::make_shared<RandomValues>(problem, seed);
    base_ = plan.request(scores, values);
    plan.keep_output(base_);
    if (!context_.deterministic) repeat_ = plan.request(scores, values, 1);
    const std::int64_t rounds = rounds_for(context_);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const auto cuts =
          std::make_shared<CutAssignment>(problem, round, context_.seed);
      const RowCounts counts = count_rows(*cuts);
      if (counts.hold == 0) continue;
      plan_round(plan, cuts, round, false);
      plan_round(plan, cuts, round, true);
      if (counts.move > 0) ++rounds_that_move_;
    }
    // Where no row sees a perturbed token, other inputs altogether are the
    // positive control: every row may move.
    if (rounds_that_move_ == 0)
      control_ = plan.request(
          std::make_shared<RandomScores>(problem, mix_bits(seed), 1, "control"),
          std::make_shared<RandomValues>(problem, mix_bits(seed)));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    if (seen.call == repeat_.call) measure_noise(seen);
    if (seen.call == control_.call) judge_control(seen);
    for (const Round& round : rounds_)
      if (seen.call == round.ticket.call) judge_round(seen, round, sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    if (!(noise_ <= kMostNoise)) {
      result.verdict = Verdict::kInconclusive;
      result.note = "repeated calls differ by " + format_short(noise_) +
                    ": too much noise to judge by";
    } else {
      conclude(sink, judged_ > 0 && controls_fired_ && rows_moved_ > 0,
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

  void plan_round(Plan& plan, const CutAssignmentPtr& cuts, std::int64_t round,
                  bool extreme) {
    const std::string label = "perturb-" + std::to_string(round) +
                              (extreme ? "-extreme" : "-moderate");
    const std::uint64_t seed = base_seed(context_.seed);
    const std::uint64_t fresh = derive_seed(
        seed, 2 * static_cast<std::uint64_t>(round) + (extreme ? 2 : 1));
    const double scores =
        extreme ? extreme_amplitude(context_.problem, context_.numerics) : 1;
    rounds_.push_back({cuts, plan.request(std::make_shared<PerturbedScores>(
                                              cuts, label, seed, fresh, scores),
                                          std::make_shared<PerturbedValues>(
                                              cuts, label, seed, fresh,
                                              extreme ? kExtremeValues : 1))});
  }

  void judge_control(const Observation& seen) {
    const ConstTensorView base = seen.kept(base_.call);
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      if (!rows_equal(base, seen.output, b, h, i)) ++rows_moved_;
    });
  }

  void measure_noise(const Observation& seen) {
    const ConstTensorView base = seen.kept(base_.call);
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      const double change = largest_difference(base, seen.output, b, h, i);
      // Written so that NaN, too, becomes the noise and stays it.
      if (!(change <= noise_)) noise_ = change;
    });
  }

  // Largest |difference| that passes; negative: bit for bit.
  double bound() const {
    if (context_.tolerance.kind == Tolerance::Kind::kNumber)
      return context_.tolerance.number;
    if (context_.tolerance.kind == Tolerance::Kind::kAuto &&
        !context_.deterministic)
      return 4 * noise_;
    return -1;
  }

  void judge_round(const Observation& seen, const Round& round,
                   FindingSink& sink) {
    const CutAssignment& cuts = *round.cuts;
    const ConstTensorView base = seen.kept(base_.call);
    const double limit = bound();
    std::vector<char> may_move(heads_.size(), 0), moved(heads_.size(), 0);
    for_each_row(
        context_.problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                              const KeyRanges& allowed) {
          const bool hold = cuts.must_hold(b, h, i);
          const std::size_t slot = head_slot(b, h);
          if (hold)
            ++rows_held_;
          else
            may_move[slot] |= can_move(cuts, b, h, allowed);
          if (rows_equal(base, seen.output, b, h, i)) return;
          const double change = largest_difference(base, seen.output, b, h, i);
          // Noise is no movement, neither for a finding nor for the control.
          if (limit >= 0 && change <= limit) return;
          if (!hold) {
            moved[slot] = 1;
            ++rows_moved_;
            return;
          }
          report(seen, cuts, b, h, i, change, std::max(limit, 0.0), sink);
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
  std::vector<char> heads_;  // One slot per (batch, head).
  Ticket base_, repeat_, control_;
  std::vector<Round> rounds_;
  double noise_ = 0;
  std::int64_t judged_ = 0;
  std::int64_t rounds_that_move_ = 0;
  bool controls_fired_ = true;
  std::int64_t rows_held_ = 0;
  std::int64_t rows_moved_ = 0;
};

std::string why_not_applicable(const CheckContext& context) {
  const std::int64_t rounds = rounds_for(context);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const CutAssignment cuts(context.problem, round, context.seed);
    const RowCounts counts = count_rows(cuts);
    if (counts.hold > 0) return "";
  }
  return "no row is shielded from any token: every row sees the last key, and "
         "there is no second query";
}

}  // namespace

const CheckInfo kFutureInfluence = {
    .id = "future-influence",
    .summary = "changing a later token does not change an earlier output",
    .cost = "1 call and 2 per round of cuts",
    .explanation =
        R"(future-influence: changing a later token does not change an earlier output

What it sees
  Later tokens (their keys, values and queries) get fresh random values, once
  of the usual size and once far larger. Rows that may see none of them must
  be unchanged bit for bit; rows that may must move (the positive control).
  Every (batch entry, KV head) has its own cut: first, last, both sides of
  tile edges, then random. Where every row sees every key, only other rows'
  queries are changed.

      causal, 5 tokens, right axis    softmax over the query axis
        row 0  #....                    row 0  #XXXX
        row 1  ##...                    row 1  ##XXX
        row 2  ###..                    row 2  ###XX

What it looks like
  A missing or misaligned causal mask, a mask applied after the softmax,
  softmax over the query axis (the leak goes through the normaliser: no later
  value is ever read), scales or block maxima shared with later tokens.

What to look at in the kernel
  The mask's alignment when seq_len_q != seq_len_kv, the tile-skipping
  condition, which axis the maximum and the sum run over, anything computed
  over a whole tile before the mask.

Tolerance
  auto: exact (bitwise); for an engine that declares itself non-deterministic
  four times the noise measured by repeating the base call. Engines whose
  rounding legally depends on the future (dynamic scales) need a number.
)",
    .not_applicable = why_not_applicable,
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<FutureInfluence>(context);
    },
};

}  // namespace attnguard
