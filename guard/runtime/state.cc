#include "guard/runtime/state.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "guard/runtime/sampler.h"

namespace attnguard::runtime_internal {
namespace {

// Part of the budget for the shadow checks and the canary, where they are on.
constexpr double kActivePart = 0.3;

// Part of the budget that deciding about calls may take by itself.
constexpr double kDecidingPart = 0.125;

// By how much the gap between decisions may grow from one to the next.
constexpr double kLargestDebt = 0.01;  // of what a window allows
constexpr double kMostGrowth = 8;

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

bool any_active(const RuntimePolicy& policy) {
  // Overrides of single layers may switch on what is off for the rest.
  const RuntimeSettings all = policy.resolve("");
  for (const LiveCheckInfo* info : live_checks())
    if (!info->passive && all.is_on(info->check)) return true;
  for (const RuntimePatch& patch : policy.patches)
    for (const auto& [check, severity] : patch.severities)
      if (severity != Severity::kOff && check != LiveCheck::kEngine &&
          !live_checks()[static_cast<std::size_t>(check)]->passive)
        return true;
  return false;
}

// Mean gap between the calls that are decided about: the policy's, or a longer
// one where deciding alone would break the budget.
double mean_gap(const GuardState& state, const Shard& shard, const Layer& layer,
                LayerSlot& slot) {
  const auto wanted = static_cast<double>(layer.settings.sample_every);
  if (!state.policy.max_overhead || wanted <= 0 || slot.call_ns == 0)
    return slot.mean = wanted;
  // Every layer of the thread decides by itself, at the same rate.
  const double allowed = *state.policy.max_overhead * kDecidingPart *
                         slot.call_ns /
                         static_cast<double>(std::max(shard.num_layers, 1u));
  const double needed = shard.slow_path_ns / std::max(allowed, 1e-9);
  // A burst of calls is no reason to look away for long.
  const double most = kMostGrowth * std::max(slot.mean, 1.0);
  return slot.mean = std::max(wanted, std::min(needed, most));
}

// Time from call to call of the layer.
void measure_calls(LayerSlot& slot, std::int64_t now) {
  const std::int64_t passed = now - slot.last_time;
  slot.last_time = now;
  if (passed <= 0 || slot.gap <= 0) return;
  const double each =
      static_cast<double>(passed) / static_cast<double>(slot.gap);
  slot.call_ns = slot.call_ns == 0
                     ? each
                     : slot.call_ns + 0.2 * (std::min(each, 4 * slot.call_ns) -
                                             slot.call_ns);
}

void draw_next(GuardState& state, Shard& shard, const Layer& layer,
               LayerSlot& slot) {
  slot.gap = draw_gap(shard.draw(state.policy.seed),
                      mean_gap(state, shard, layer, slot));
  // In this order a snapshot in between sees too few calls, never too many,
  // which would make the counter fall later.
  shard.countdowns[layer.index].fetch_add(slot.gap, std::memory_order_relaxed);
  slot.drawn.add(slot.gap);
}

}  // namespace

GuardState::GuardState(RuntimePolicy its_policy, GuardHooks its_hooks)
    : id(next_id()),
      policy(std::move(its_policy)),
      hooks(std::move(its_hooks)),
      passive_share(policy.max_overhead.value_or(-1)),
      active_share(policy.max_overhead.value_or(-1)) {
  if (!policy.max_overhead) return;
  active_share = any_active(policy) ? kActivePart * *policy.max_overhead : 0;
  passive_share = *policy.max_overhead - active_share;
}

void GuardState::begin(Shard& shard, const Layer& layer) {
  LayerSlot& slot = shard.slots[layer.index];
  slot.last_time = monotonic_now();
  draw_next(*this, shard, layer, slot);
}

bool GuardState::decide(Shard& shard, const Layer& layer, std::int64_t start) {
  LayerSlot& slot = shard.slots[layer.index];
  measure_calls(slot, start);
  draw_next(*this, shard, layer, slot);
  // What cannot be afforded is known before anything is touched, as calls are
  // like the last one, as a rule. Never where it could be wrong for ever.
  const double room = shard.budget.room(start);
  const double most = shard.budget.most();
  const bool too_dear = slot.expected_cost > 0 && slot.expected_cost <= most &&
                        slot.expected_cost > room;
  const bool in_debt = room < -kLargestDebt * most;
  const bool hopeless = shard.budget.limited() && (too_dear || in_debt);
  if (!hopeless) shard.tally.sampled.add(1);
  if (hopeless) {
    for (const LiveCheckInfo* info : live_checks())
      if (info->passive && layer.settings.is_on(info->check))
        shard.tally.check(info->check).skip(SkipReason::kBudget);
    shard.costs[static_cast<std::size_t>(slot.expected)].forget();
    // A price that has come down, or a smaller call, is found out in time.
    slot.expected_cost *= 0.98;
  }
  const std::int64_t now = monotonic_now();
  const std::int64_t took = now - start;
  shard.slow_path_ns +=
      0.05 * (std::min(static_cast<double>(took), 4 * shard.slow_path_ns) -
              shard.slow_path_ns);
  shard.budget.spend(now, took);
  shard.tally.overhead_ns.add(static_cast<std::uint64_t>(took));
  return !hopeless;
}

GuardCounters GuardState::snapshot() {
  GuardCounters sum;
  const std::lock_guard lock(mutex);
  const std::int64_t now = monotonic_now();
  std::vector<std::array<std::uint64_t, kNumLiveChecks>> violations(
      GuardCounters::kMostGroups + 1);
  for (const std::unique_ptr<Shard>& shard : shards) {
    const ShardTally& tally = shard->tally;
    shard->shown_calls = std::max(shard->shown_calls, shard->calls());
    sum.calls += static_cast<std::uint64_t>(shard->shown_calls);
    sum.sampled += tally.sampled.get();
    sum.checked += tally.checked.get();
    sum.fallbacks += tally.fallbacks.get();
    sum.overhead_nanoseconds += tally.overhead_ns.get();
    std::int64_t elapsed = shard->elapsed_before.get();
    if (shard->in_use.load()) {
      elapsed += now - shard->start.get();
      ++sum.threads;
      sum.window_overhead =
          std::max(sum.window_overhead, shard->budget.used(now));
    }
    sum.elapsed_nanoseconds += static_cast<std::uint64_t>(elapsed);
    for (std::size_t i = 0; i < kNumLiveChecks; ++i) {
      tally.checks[i].add_to(sum.checks[i]);
      for (std::size_t g = 0; g < violations.size(); ++g)
        violations[g][i] += tally.groups[g][i].get();
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    sum.groups.push_back({groups[g], violations[g]});
  const auto& other = violations[GuardCounters::kMostGroups];
  if (std::any_of(other.begin(), other.end(), [](auto n) { return n > 0; }))
    sum.groups.push_back({"other", other});
  sum.canary = canary.state(now);
  return sum;
}

}  // namespace attnguard::runtime_internal
