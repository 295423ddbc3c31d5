// value-range: outputs lie within the range of the values that the row sees.
//
// One KV head of one entry is judged in a look. Its rows are walked in order:
// where each sees what the one before saw and more, as under a causal mask,
// the range grows with them and every value is read once. Other rows are
// judged only when they were drawn. In decode the range is that of the
// sequence, kept since the last look; a range of more tokens than a row sees
// is wider, never narrower, so that it raises no false alarm.
#include <algorithm>

#include "guard/runtime/live_bounds.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {
namespace {

struct ValuePlace {
  RowIndex picked;
  std::int64_t kv_head = 0;
};

bool find_place(const LiveCall& live, ValuePlace& place) {
  if (!live.picked(0, place.picked)) return false;
  place.kv_head = live.problem.kv_head_of(place.picked.head);
  return true;
}

// The kept range of the sequence; nullptr when sequences have no names.
Hull* kept_hull(const LiveCall& live, const ValuePlace& place) {
  if (live.context.sequences == nullptr) return nullptr;
  const std::uint64_t sequence = live.context.sequences[place.picked.batch];
  return &live.shard.hulls.find(live.layer.index, sequence, place.kv_head,
                                live.sequences.epoch(sequence),
                                live.problem.head_dim_v);
}

double work_value_range(const LiveCall& live) {
  ValuePlace place;
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
  const ValueLimits limits(p, live.numerics, num_keys, hull.low, hull.high);
  ++judgement.rows;
  double worst = 0;
  for (std::size_t c = 0; c < output.size(); ++c) {
    const ValueLimit limit = limits.of(c);
    const double outside = limit.outside(output[c]);
    worst = std::max(worst, outside / limit.slack);
    if (outside <= limit.slack) continue;
    judgement.tally.error(outside / limit.slack);
    judgement.sink.add(
        outside_finding(row, static_cast<std::int64_t>(c), output[c], limit));
    return;
  }
  judgement.tally.error(worst);
}

void run_value_range(const LiveCall& live, Judgement& judgement) {
  ValuePlace place;
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
                                       .units = work_value_range,
                                       .run = run_value_range};

}  // namespace attnguard::runtime_internal
