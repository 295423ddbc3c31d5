#include "guard/runtime/live_check.h"

#include <algorithm>

#include "guard/base/rng.h"
#include "guard/engine/reference_allowed.h"
#include "guard/runtime/live_bounds.h"
#include "guard/runtime/sampler.h"

namespace attnguard::runtime_internal {
namespace {

constexpr const LiveCheckInfo* kTable[] = {
    &kLiveFinite,      &kLiveValueRange, &kLiveSingleKey, &kLiveRecompute,
    &kLiveLaterTokens, &kLiveOnes,       &kLiveCanary,
};
static_assert(std::size(kTable) ==
              static_cast<std::size_t>(LiveCheck::kEngine));

bool lengths_fit(const std::vector<std::int64_t>& lengths, std::int64_t batch) {
  if (lengths.size() != 1 && lengths.size() != static_cast<std::size_t>(batch))
    return false;
  return std::all_of(lengths.begin(), lengths.end(),
                     [](std::int64_t length) { return length >= 0; });
}

std::int64_t longest(const std::vector<std::int64_t>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

// Holds `positions` tokens of `channels`, as far as a view can say.
bool holds(const ConstTensorView& view, std::int64_t batch, std::int64_t heads,
           std::int64_t positions, std::int64_t channels) {
  if (view.data == nullptr) return positions == 0;
  if (view.shape[1] < heads || view.shape[3] < channels) return false;
  if (view.tokens == nullptr)
    return view.shape[0] >= batch && view.shape[2] >= positions;
  const TokenMap& map = *view.tokens;
  if (map.block_size < 1) return false;
  const std::int64_t blocks = (positions + map.block_size - 1) / map.block_size;
  return map.width >= blocks &&
         static_cast<std::int64_t>(map.table.size()) >= batch * map.width;
}

}  // namespace

std::span<const LiveCheckInfo* const> live_checks() { return kTable; }

void LiveCall::allowed(std::int64_t batch, std::int64_t query,
                       KeyRanges& out) const {
  const RowPlace place = problem.row(batch, query);
  if (context.mask != nullptr)
    context.mask->allowed(place, out);
  else
    problem.mask.allowed(place, out);
}

bool LiveCall::picked(std::int64_t n, RowIndex& row) const {
  return pick_row(problem, derive_seed(bits, static_cast<std::uint64_t>(n)),
                  row);
}

void LiveCall::reference(const RowIndex& row, const KeyRanges& allowed,
                         ReferenceRow& result) const {
  const ReferenceInputs inputs{&problem, call.query, call.key, call.value};
  reference_row_of(inputs, row.batch, row.head, row.query, allowed, result);
}

bool usable_call(const AttentionCall& call) {
  const Problem* p = call.problem;
  if (p == nullptr || p->batch < 1 || p->num_heads < 1 || p->num_kv_heads < 1 ||
      p->num_heads % p->num_kv_heads != 0 || p->head_dim_qk < 1 ||
      p->head_dim_v < 1)
    return false;
  if (!lengths_fit(p->seq_len_q, p->batch) ||
      !lengths_fit(p->seq_len_kv, p->batch) || call.output.data == nullptr)
    return false;
  if (p->sinks.size() > 1 &&
      p->sinks.size() != static_cast<std::size_t>(p->num_heads))
    return false;
  const std::int64_t len_q = longest(p->seq_len_q);
  const std::int64_t len_kv = longest(p->seq_len_kv);
  return holds(call.query, p->batch, p->num_heads, len_q, p->head_dim_qk) &&
         holds(call.output, p->batch, p->num_heads, len_q, p->head_dim_v) &&
         holds(call.key, p->batch, p->num_kv_heads, len_kv, p->head_dim_qk) &&
         holds(call.value, p->batch, p->num_kv_heads, len_kv, p->head_dim_v) &&
         p->mask.validate(*p).ok();
}

void compare_row(const LiveCall& live, const RowIndex& row,
                 const ReferenceRow& expected, Judgement& judgement) {
  std::vector<double>& output = live.shard.scratch.output;
  const std::int64_t channels = live.problem.head_dim_v;
  output.resize(static_cast<std::size_t>(channels));
  live.call.output.load_row(row.batch, row.head, row.query, 0, channels,
                            output.data());
  const WorstChannel worst =
      worst_channel(live.problem, live.numerics, expected, output);
  ++judgement.rows;
  judgement.tally.error(worst.ratio);
  if (worst.ratio <= 1) return;
  const auto channel = static_cast<std::size_t>(worst.channel);
  judgement.sink.add(difference_finding(row, worst, output[channel],
                                        expected.output[channel]));
}

}  // namespace attnguard::runtime_internal
