// later-tokens: the live call twice in scratch memory, the second time with
// fresh values in later tokens (or in other entries of the batch). Rows that
// see nothing of them must not change by a bit; rows that do must move.
#include <algorithm>
#include <cmath>
#include <memory>

#include "guard/base/rng.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/runtime/live_shadow.h"

namespace attnguard::runtime_internal {
namespace {

double work_later_tokens(const LiveCall& live) { return 2 * shadow_work(live); }

// Where the fresh tokens of an entry begin: behind what a drawn row sees, or,
// of every other look at a batch, all of an entry or none of it.
std::int64_t first_fresh_key(const LiveCall& live, std::int64_t b,
                             KeyRanges& allowed) {
  const Problem& p = live.problem;
  const std::uint64_t bits =
      derive_seed(live.bits ^ 0x6375747321ull, static_cast<std::uint64_t>(b));
  if (p.batch > 1 && (live.bits & 1) != 0)
    return (bits & 1) != 0 || b == 0 ? p.len_kv(b) : p.shared_prefix;
  if (p.len_q(b) == 0) return p.len_kv(b);
  RowIndex row;
  for (std::int64_t n = 0; n < 8; ++n) {
    if (!live.picked(8 * b + n, row)) break;
    if (row.query >= p.len_q(b)) continue;
    live.allowed(b, row.query, allowed);
    if (allowed.empty() || allowed.last() + 1 >= p.len_kv(b)) continue;
    return std::max(allowed.last() + 1, p.shared_prefix);
  }
  return p.len_kv(b);
}

// How many rows must hold and how many must move.
struct Rows {
  std::int64_t hold = 0, move = 0;
};

Rows choose(const LiveCall& live, FreshTokens& fresh) {
  const Problem& p = live.problem;
  KeyRanges allowed;
  Rows rows;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t first = first_fresh_key(live, b, allowed);
    fresh.first_key.push_back(first);
    std::vector<char>& queries =
        fresh.fresh_query.emplace_back(static_cast<std::size_t>(p.len_q(b)), 0);
    for (std::int64_t i = 0; i < p.len_q(b); ++i) {
      live.allowed(b, i, allowed);
      if (allowed.empty()) continue;
      const bool sees = allowed.last() >= first;
      queries[static_cast<std::size_t>(i)] = sees ? 1 : 0;
      ++(sees ? rows.move : rows.hold);
    }
  }
  return rows;
}

// What the row may differ by.
double limit_of(const LiveCall& live, const RowIndex& row,
                const KeyRanges& allowed) {
  if (live.layer.options.deterministic) return 0;
  ReferenceRow& expected = live.shard.scratch.row;
  live.reference(row, allowed, expected);
  double limit = 0;
  for (std::int64_t c = 0; c < live.problem.head_dim_v; ++c)
    limit = std::max(
        limit, 2 * reference_bound(live.problem, live.numerics, expected, c));
  return limit;
}

void judge_row(const LiveCall& live, const ConstTensorView& before,
               const ConstTensorView& after, const RowIndex& row,
               const KeyRanges& allowed, std::int64_t first_key,
               Judgement& judgement) {
  ++judgement.rows;
  if (rows_equal(before, after, row.batch, row.head, row.query)) return;
  const double limit = limit_of(live, row, allowed);
  const double difference =
      largest_difference(before, after, row.batch, row.head, row.query);
  if (difference <= limit && limit > 0) return;
  Finding finding{
      .kind = FindingKind::kLeak,
      .probe = "later-tokens",
      .batch = row.batch,
      .head = row.head,
      .query = row.query,
      .key = first_key < live.problem.len_kv(row.batch) ? first_key : -1,
      .observed = difference,
      .expected = 0,
      .bound = limit};
  finding.message = row_name(row.batch, row.head, row.query) + ": moves by " +
                    format_short(difference) +
                    " when tokens change that it must not see";
  judgement.sink.add(std::move(finding));
}

void run_later_tokens(const LiveCall& live, Judgement& judgement) {
  const FreshTokens none;
  FreshTokens fresh;
  const Rows rows = choose(live, fresh);
  // Without rows of both kinds nothing could be seen.
  if (rows.hold == 0 || rows.move == 0) return;
  const auto shadow = std::make_shared<ShadowRun>(live);
  const Ticket before =
      shadow->plan.request(std::make_shared<LiveScores>(live, none, "live"),
                           std::make_shared<LiveValues>(live, none, "live"));
  const Ticket after = shadow->plan.request(
      std::make_shared<LiveScores>(live, fresh, "live, later tokens fresh"),
      std::make_shared<LiveValues>(live, fresh, "fresh"));
  shadow->plan.keep_output(before);
  Observation seen;
  if (!shadow->run(before.call, seen, judgement) ||
      !shadow->run(after.call, seen, judgement))
    return;
  const ConstTensorView held = seen.kept(before.call);
  bool moved = false;
  for_each_row(live.problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                                 const KeyRanges& allowed) {
    if (fresh.query(b, i))
      moved = moved || !rows_equal(held, seen.output, b, h, i);
    else
      judge_row(live, held, seen.output, {b, h, i}, allowed,
                fresh.first_key[static_cast<std::size_t>(b)], judgement);
  });
  // A kernel that moves for nothing is not seen to be right.
  if (!moved) judgement.rows = 0;
  if (judgement.sink.count() == 0) return;
  judgement.scratch_call = call_of(seen);
  judgement.scratch = shadow;
}

}  // namespace

const LiveCheckInfo kLiveLaterTokens = {.check = LiveCheck::kLaterTokens,
                                        .passive = false,
                                        .first_guess = 0.5,
                                        .units = work_later_tokens,
                                        .run = run_later_tokens};

}  // namespace attnguard::runtime_internal
