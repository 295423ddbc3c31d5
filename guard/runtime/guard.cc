#include "guard/runtime/guard.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "guard/runtime/state.h"

namespace attnguard {

using runtime_internal::GuardState;
using runtime_internal::Layer;
using runtime_internal::Shard;

namespace {

constexpr char kOther[] = "other";

std::uint32_t group_index(GuardState& state, const std::string& group) {
  const auto found = std::find(state.groups.begin(), state.groups.end(), group);
  if (found != state.groups.end())
    return static_cast<std::uint32_t>(found - state.groups.begin());
  if (state.groups.size() < GuardCounters::kMostGroups)
    state.groups.push_back(group);
  else
    return GuardCounters::kMostGroups;
  return static_cast<std::uint32_t>(state.groups.size() - 1);
}

}  // namespace

Result<std::unique_ptr<Guard>> Guard::create(RuntimePolicy policy,
                                             GuardHooks hooks) {
  if (Status status = policy.validate(); !status.ok()) return status;
  auto state =
      std::make_unique<GuardState>(std::move(policy), std::move(hooks));
  return std::unique_ptr<Guard>(new Guard(std::move(state)));
}

Guard::Guard(std::unique_ptr<GuardState> state)
    : id_(state->id), state_(std::move(state)) {
  register_guard(*state_);
}

Guard::~Guard() { forget_guard(*state_); }

LayerHandle Guard::layer(std::string_view name, const LayerOptions& options) {
  const std::lock_guard lock(state_->mutex);
  if (const Layer* known = state_->layers.find(name)) return {known->index};
  // More layers than any model has: a caller that makes up a name for each
  // call. They share the last one.
  if (state_->layers.size() == runtime_internal::LayerTable::kMost)
    return {runtime_internal::LayerTable::kMost - 1};
  auto layer = std::make_unique<Layer>();
  layer->name = name;
  layer->group =
      options.group.empty() ? runtime_internal::group_of(name) : options.group;
  layer->group_index = group_index(*state_, layer->group);
  if (layer->group_index == GuardCounters::kMostGroups) layer->group = kOther;
  layer->options = options;
  layer->settings = state_->policy.resolve(name);
  state_->layers.add(std::move(layer));
  return {state_->layers.size() - 1};
}

AttentionCallback Guard::wrap(AttentionCallback kernel, LayerHandle layer) {
  return [this, kernel = std::move(kernel),
          layer](const AttentionCall& call) -> Status {
    if (!sampled(layer)) return kernel(call);
    Status status = kernel(call);
    if (!status.ok()) return status;
    ObserveContext context;
    context.kernel = &kernel;
    const Observed seen = observe(layer, call, context);
    if ((seen.actions & kActionThrow) != 0)
      throw ViolationError(
          layer_name(layer) +
          ": the live guard found a violation, and the policy says throw");
    return status;
  };
}

bool Guard::sampled_slowly(LayerHandle layer) noexcept {
  try {
    const std::int64_t start = runtime_internal::monotonic_now();
    if (layer.index >= state_->layers.size()) return false;
    const runtime_internal::ThreadCache before = runtime_internal::thread_cache;
    const bool was_counted =
        before.guard_id == id_ && layer.index < before.num_layers;
    Shard& shard = state_->shard();
    std::atomic<std::int64_t>& countdown = shard.countdowns[layer.index];
    const Layer& its = state_->layers.at(layer.index);
    runtime_internal::LayerSlot& slot = shard.slots[layer.index];
    if (!was_counted)
      countdown.store(countdown.load(std::memory_order_relaxed) - 1,
                      std::memory_order_relaxed);
    if (slot.gap == 0) state_->begin(shard, its);
    if (countdown.load(std::memory_order_relaxed) > 0) return false;
    return state_->decide(shard, its, start);
  } catch (...) {
    return false;  // No memory for the thread's shard: this call is not seen.
  }
}

Observed Guard::observe(LayerHandle layer, const AttentionCall& call,
                        const ObserveContext& context) noexcept {
  try {
    if (layer.index >= state_->layers.size()) return {};
    Shard& shard = state_->shard();
    const Layer& its = state_->layers.at(layer.index);
    try {
      return state_->observe(shard, its, call, context);
    } catch (...) {
      for (const runtime_internal::LiveCheckInfo* info :
           runtime_internal::live_checks())
        if (its.settings.is_on(info->check))
          shard.tally.check(info->check).skip(SkipReason::kGuardError);
    }
  } catch (...) {
    // No memory for the thread's shard, and so nowhere to count.
  }
  return {};
}

void Guard::charge(std::int64_t nanoseconds) noexcept {
  if (nanoseconds <= 0) return;
  try {
    Shard& shard = state_->shard();
    const std::int64_t now = runtime_internal::monotonic_now();
    shard.budget.spend(now, nanoseconds);
    shard.tally.overhead_ns.add(static_cast<std::uint64_t>(nanoseconds));
  } catch (...) {
    // No memory for the thread's shard: nothing is looked at in it either.
  }
}

void Guard::append(std::uint64_t sequence, std::int64_t first,
                   std::int64_t count) {
  state_->sequences.append(sequence, first, count);
}

void Guard::truncate(std::uint64_t sequence, std::int64_t length) {
  state_->sequences.truncate(sequence, length);
}

void Guard::fork(std::uint64_t parent, std::uint64_t child) {
  const std::uint32_t parent_epoch = state_->sequences.epoch(parent);
  state_->sequences.fork(parent, child);
  state_->shard().hulls.fork(parent, parent_epoch, child,
                             state_->sequences.epoch(child));
}

void Guard::evict(std::uint64_t sequence) { state_->sequences.evict(sequence); }

GuardCounters Guard::counters() const { return state_->snapshot(); }

const RuntimePolicy& Guard::policy() const { return state_->policy; }

std::string Guard::layer_name(LayerHandle layer) const {
  if (layer.index >= state_->layers.size()) return "";
  return state_->layers.at(layer.index).name;
}

RuntimeSettings Guard::layer_settings(LayerHandle layer) const {
  if (layer.index >= state_->layers.size()) return {};
  return state_->layers.at(layer.index).settings;
}

}  // namespace attnguard
