// single-key: a row that sees one key equals that key's value.
//
// Rows with one key stand at the start of an entry, as a rule; a few places of
// a few entries are looked at, in every head.
#include <algorithm>
#include <cmath>

#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {
namespace {

constexpr std::int64_t kMostEntries = 4;
constexpr std::int64_t kMostHeads = 64;

double work_single_key(const LiveCall& live) {
  const Problem& p = live.problem;
  const std::int64_t heads = std::min(p.num_heads, kMostHeads);
  return static_cast<double>(std::min(p.batch, kMostEntries) * heads *
                                 (p.head_dim_qk + p.head_dim_v) +
                             64);
}

void judge_place(const LiveCall& live, const RowIndex& first,
                 Judgement& judgement) {
  Scratch& scratch = live.shard.scratch;
  live.allowed(first.batch, first.query, scratch.allowed);
  if (scratch.allowed.count() != 1) return;
  const Problem& p = live.problem;
  for (std::int64_t n = 0; n < std::min(p.num_heads, kMostHeads); ++n) {
    const RowIndex row{first.batch, (first.head + n) % p.num_heads,
                       first.query};
    live.reference(row, scratch.allowed, scratch.row);
    if (!std::isfinite(scratch.row.lse)) {
      judgement.skipped = SkipReason::kInputNotFinite;
      continue;
    }
    compare_row(live, row, scratch.row, judgement);
  }
}

void run_single_key(const LiveCall& live, Judgement& judgement) {
  const Problem& p = live.problem;
  // Beside a sink the one key has less than all of the weight.
  if (!p.sinks.empty()) return;
  for (std::int64_t n = 0; n < std::min(p.batch, kMostEntries); ++n) {
    RowIndex row;
    if (!live.picked(n, row)) return;
    judge_place(live, {row.batch, row.head, 0}, judgement);
    if (row.query > 0) judge_place(live, row, judgement);
    const std::int64_t last = p.len_q(row.batch) - 1;
    if (last > 0 && last != row.query)
      judge_place(live, {row.batch, row.head, last}, judgement);
  }
}

}  // namespace

const LiveCheckInfo kLiveSingleKey = {.check = LiveCheck::kSingleKey,
                                      .passive = true,
                                      .first_guess = 5,
                                      .units = work_single_key,
                                      .run = run_single_key};

}  // namespace attnguard::runtime_internal
