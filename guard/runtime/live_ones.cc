// ones: with values of 1 each row's output is the sum of its weights. The live
// queries and keys, in scratch memory.
#include <algorithm>
#include <cmath>
#include <memory>

#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/ones.h"
#include "guard/runtime/live_shadow.h"

namespace attnguard::runtime_internal {
namespace {

// Rows that need the reference, as a sink takes part of their mass.
constexpr std::int64_t kRowsBesideSinks = 8;

double work_ones(const LiveCall& live) { return shadow_work(live); }

void judge_row(const Observation& seen, const RowIndex& row, double mass,
               double bound, Judgement& judgement) {
  double sum = 0;
  seen.output.load_row(row.batch, row.head, row.query, 0, 1, &sum);
  const double ratio = std::abs(sum - mass) / std::max(bound, 1e-300);
  ++judgement.rows;
  judgement.tally.error(ratio);
  if (ratio <= 1) return;
  Finding finding{.kind = FindingKind::kMass,
                  .probe = "ones",
                  .batch = row.batch,
                  .head = row.head,
                  .query = row.query,
                  .channel = 0,
                  .observed = sum,
                  .expected = mass,
                  .bound = bound};
  finding.message = row_name(row.batch, row.head, row.query) +
                    ": weights sum to " + format_short(sum) + " instead of " +
                    format_short(mass);
  judgement.sink.add(std::move(finding));
}

void judge_beside_sinks(const LiveCall& live, const Observation& seen,
                        Judgement& judgement) {
  Scratch& scratch = live.shard.scratch;
  for (std::int64_t n = 0; n < kRowsBesideSinks; ++n) {
    RowIndex row;
    if (!live.picked(n, row)) return;
    live.allowed(row.batch, row.query, scratch.allowed);
    if (scratch.allowed.empty()) continue;
    live.reference(row, scratch.allowed, scratch.row);
    if (std::isfinite(scratch.row.lse))
      judge_row(seen, row, scratch.row.mass,
                mass_bound(live.problem, live.numerics, scratch.row),
                judgement);
  }
}

void run_ones(const LiveCall& live, Judgement& judgement) {
  const FreshTokens none;
  const auto shadow = std::make_shared<ShadowRun>(live);
  const Ticket ticket =
      shadow->plan.request(std::make_shared<LiveScores>(live, none, "live"),
                           std::make_shared<Ones>());
  Observation seen;
  if (!shadow->run(ticket.call, seen, judgement)) return;
  if (!live.problem.sinks.empty()) {
    judge_beside_sinks(live, seen, judgement);
  } else {
    for_each_row(live.problem, [&](std::int64_t b, std::int64_t h,
                                   std::int64_t i, const KeyRanges& allowed) {
      judge_row(seen, {b, h, i}, 1,
                mean_bound(live.problem, live.numerics, allowed.count()),
                judgement);
    });
  }
  if (judgement.sink.count() == 0) return;
  judgement.scratch_call = call_of(seen);
  judgement.scratch = shadow;
}

}  // namespace

const LiveCheckInfo kLiveOnes = {.check = LiveCheck::kOnes,
                                 .passive = false,
                                 .first_guess = 0.5,
                                 .units = work_ones,
                                 .run = run_ones};

}  // namespace attnguard::runtime_internal
