#include "guard/runtime/shard.h"

#include <unistd.h>

#include "guard/base/rng.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {

Shard::Shard(std::uint64_t its_number, double passive_share,
             double active_share, double window)
    : number(its_number), budget(passive_share, window), savings(active_share) {
  for (const LiveCheckInfo* info : live_checks())
    costs[static_cast<std::size_t>(info->check)] = CostModel(info->first_guess);
  const std::int64_t now = monotonic_now();
  start.set(now);
  budget.start(now);
  savings.start(now);
}

void Shard::reserve(std::uint32_t layers) {
  if (layers <= num_layers) return;
  auto more_countdowns = std::make_unique<std::atomic<std::int64_t>[]>(layers);
  auto more_slots = std::make_unique<LayerSlot[]>(layers);
  for (std::uint32_t i = 0; i < num_layers; ++i) {
    more_countdowns[i].store(countdowns[i].load());
    const LayerSlot& from = slots[i];
    LayerSlot& to = more_slots[i];
    to.drawn.set(from.drawn.get());
    to.gap = from.gap;
    to.last_time = from.last_time;
    to.call_ns = from.call_ns;
    to.mean = from.mean;
    to.expected_cost = from.expected_cost;
    to.expected = from.expected;
    to.looks = from.looks;
    to.shadow_gap = from.shadow_gap;
    to.shadow_due = from.shadow_due;
  }
  countdowns = std::move(more_countdowns);
  slots = std::move(more_slots);
  num_layers = layers;
}

std::uint64_t Shard::draw(std::uint64_t seed) {
  // Processes that a fork made look at calls of their own.
  const auto process = static_cast<std::uint64_t>(fork_generation());
  return derive_seed(derive_seed(seed, number ^ process << 32), ++draws_);
}

std::int64_t Shard::calls() const {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < num_layers; ++i)
    sum += slots[i].drawn.get() - countdowns[i].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace attnguard::runtime_internal
