// A check in a running engine: one file each, and a line in live_checks.cc.
#ifndef ATTNGUARD_GUARD_RUNTIME_LIVE_CHECK_H_
#define ATTNGUARD_GUARD_RUNTIME_LIVE_CHECK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "guard/check/check.h"
#include "guard/check/reference_rows.h"
#include "guard/runtime/layer.h"
#include "guard/runtime/shard.h"

namespace attnguard::runtime_internal {

// The call that is looked at. `problem` was found usable; see usable_call.
struct LiveCall {
  const AttentionCall& call;
  const Problem& problem;
  const ObserveContext& context;
  const Numerics& numerics;
  const Layer& layer;
  const SequenceClock& sequences;
  Shard& shard;
  std::uint64_t bits;  // Random, of this look.
  std::int64_t rows;   // Rows that may be computed again.

  void allowed(std::int64_t batch, std::int64_t query, KeyRanges& out) const;

  // The n-th row that was drawn for this look.
  bool picked(std::int64_t n, RowIndex& row) const;

  // fp64 attention of the row; `allowed` are its keys.
  void reference(const RowIndex& row, const KeyRanges& allowed,
                 ReferenceRow& result) const;
};

// What a check says of a call.
struct Judgement {
  CheckTally& tally;
  FindingSink sink;
  std::int64_t rows = 0;  // Judged. None, and no reason: nothing to judge.
  std::optional<SkipReason> skipped;

  // The call on scratch memory that is wrong, of shadow checks and the canary,
  // and what its memory belongs to.
  std::optional<AttentionCall> scratch_call;
  std::shared_ptr<void> scratch;
};

struct LiveCheckInfo {
  LiveCheck check;
  bool passive;  // It looks at the call alone.

  double first_guess;                     // Nanoseconds for a unit of work.
  double (*units)(const LiveCall& live);  // The work in one call.

  // Null for the canary, which has a history.
  void (*run)(const LiveCall& live, Judgement& judgement);
};

// Every check that the guard makes itself, in LiveCheck's order: all but
// kEngine, the last one.
std::span<const LiveCheckInfo* const> live_checks();

// Forks between the first process and this one.
std::uint32_t fork_generation();

// Why the guard cannot judge a call, or nothing when it can. Reads no tensor.
bool usable_call(const AttentionCall& call);

// Largest |output - expected| / bound over the row's channels, as a finding
// where it is above 1. `expected` is the reference's row.
void compare_row(const LiveCall& live, const RowIndex& row,
                 const ReferenceRow& expected, Judgement& judgement);

extern const LiveCheckInfo kLiveFinite;
extern const LiveCheckInfo kLiveValueRange;
extern const LiveCheckInfo kLiveSingleKey;
extern const LiveCheckInfo kLiveRecompute;
extern const LiveCheckInfo kLiveLaterTokens;
extern const LiveCheckInfo kLiveOnes;
extern const LiveCheckInfo kLiveCanary;

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_LIVE_CHECK_H_
