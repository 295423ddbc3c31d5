// value-range: outputs lie within the range of the values that the row sees.
//
// One KV head of one entry is judged in a look. Its rows are walked in order:
// where each sees what the one before saw and more, as under a causal mask,
// the range grows with them and every value is read once. Other rows are
// judged only when they were drawn. In decode the range is that of the
// sequence, kept since the last look; a range of more tokens than a row sees
// is wider, never narrower, so that it raises no false alarm.
#include <algorithm>
#include <cmath>

#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {
namespace {

// Smallest step of a type that stores weights or outputs.
double smallest(Dtype dtype) {
  return dtype == Dtype::kFp16 ? 0x1p-25 : 0x1p-125;
}

struct Place {
  RowIndex picked;
  std::int64_t kv_head = 0;
};

bool find_place(const LiveCall& live, Place& place) {
  if (!live.picked(0, place.picked)) return false;
  place.kv_head = live.problem.kv_head_of(place.picked.head);
  return true;
}

// The kept range of the sequence; nullptr when sequences have no names.
Hull* kept_hull(const LiveCall& live, const Place& place) {
  if (live.context.sequences == nullptr) return nullptr;
  const std::uint64_t sequence = live.context.sequences[place.picked.batch];
  return &live.shard.hulls.find(live.layer.index, sequence, place.kv_head,
                                live.sequences.epoch(sequence),
                                live.problem.head_dim_v);
}

double work(const LiveCall& live) {
  Place place;
  if (!find_place(live, place)) return 1;
  const Problem& p = live.problem;
  const std::int64_t b = place.picked.batch;
  std::int64_t tokens = p.len_kv(b);
  if (const Hull* kept = kept_hull(live, place))
    if (kept->end <= tokens) tokens -= kept->end;
  return static_cast<double>(
      (tokens + p.len_q(b) * p.group_size()) * (p.head_dim_v + 8) + 64);
}

void judge(const LiveCall& live, const RowIndex& row, const Hull& hull,
           std::int64_t num_keys, Judgement& judgement) {
  if (!hull.finite) {
    judgement.skipped = SkipReason::kInputNotFinite;
    return;
  }
  const Problem& p = live.problem;
  std::vector<double>& output = live.shard.scratch.output;
  output.resize(static_cast<std::size_t>(p.head_dim_v));
  live.call.output.load_row(row.batch, row.head, row.query, 0, p.head_dim_v,
                            output.data());
  double block = 0;
  for (std::size_t c = 0; c < output.size(); ++c)
    block = std::max({block, std::abs(hull.low[c]), std::abs(hull.high[c])});
  const double stored = live.numerics.value_error;
  const double relative =
      mean_bound(p, live.numerics, num_keys) - stored +
      static_cast<double>(num_keys) * smallest(live.numerics.probability);
  ++judgement.rows;
  double worst = 0;
  for (std::size_t c = 0; c < output.size(); ++c) {
    // A sink pulls towards 0.
    const double low =
        p.sinks.empty() ? hull.low[c] : std::min(hull.low[c], 0.0);
    const double high =
        p.sinks.empty() ? hull.high[c] : std::max(hull.high[c], 0.0);
    const double slack = relative * std::max(std::abs(low), std::abs(high)) +
                         stored * block + smallest(p.output_dtype());
    const double outside = std::max(low - output[c], output[c] - high);
    worst = std::max(worst, outside / slack);
    // Written so that NaN is outside.
    if (outside <= slack) continue;
    judgement.tally.error(outside / slack);
    judgement.add(FindingKind::kValue, row, static_cast<std::int64_t>(c),
                  output[c], output[c] < low ? low : high, slack,
                  "outside the values that the row sees, " + format_short(low) +
                      " to " + format_short(high));
    return;
  }
  judgement.tally.error(worst);
}

void run(const LiveCall& live, Judgement& judgement) {
  Place place;
  if (!find_place(live, place)) return;
  const Problem& p = live.problem;
  Scratch& scratch = live.shard.scratch;
  KeyRanges& allowed = scratch.allowed;
  const std::int64_t b = place.picked.batch, g = place.kv_head;
  Hull* walk = kept_hull(live, place);
  if (walk != nullptr && walk->end > p.len_kv(b)) walk->clear(0, p.head_dim_v);
  bool started = walk != nullptr;
  if (walk == nullptr) walk = &scratch.walk;
  for (std::int64_t i = 0; i < p.len_q(b); ++i) {
    live.allowed(b, i, allowed);
    if (allowed.empty()) continue;
    const bool one_range = allowed.ranges().size() == 1;
    if (!started && one_range) {
      walk->clear(allowed.first(), p.head_dim_v);
      started = true;
    }
    Hull* hull = nullptr;
    if (one_range && allowed.first() == walk->begin) {
      hull = walk;
    } else if (i == place.picked.query) {
      hull = &scratch.single;
      hull->clear(0, p.head_dim_v);
      for (const KeyRange& range : allowed.ranges()) {
        hull->end = range.begin;
        hull->extend(live.call.value, b, g, range.end, scratch.value);
      }
    } else {
      continue;
    }
    if (hull == walk)
      walk->extend(live.call.value, b, g, allowed.last() + 1, scratch.value);
    for (std::int64_t h = g * p.group_size(); h < (g + 1) * p.group_size(); ++h)
      judge(live, {b, h, i}, *hull, allowed.count(), judgement);
  }
}

}  // namespace

const LiveCheckInfo kLiveValueRange = {.check = LiveCheck::kValueRange,
                                       .passive = true,
                                       .first_guess = 2,
                                       .units = work,
                                       .run = run};

}  // namespace attnguard::runtime_internal
