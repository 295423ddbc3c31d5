// What a guard is made of.
#ifndef ATTNGUARD_GUARD_RUNTIME_STATE_H_
#define ATTNGUARD_GUARD_RUNTIME_STATE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "guard/runtime/canary.h"
#include "guard/runtime/guard.h"
#include "guard/runtime/hull.h"
#include "guard/runtime/layer.h"
#include "guard/runtime/live_check.h"
#include "guard/runtime/shard.h"

namespace attnguard::runtime_internal {

// The present thread's shard of the guard; makes the thread cache point at it.
Shard& thread_shard(GuardState& state);

struct GuardState {
  GuardState(RuntimePolicy its_policy, GuardHooks its_hooks);

  // The calling thread's shard, with room for every layer so far. Takes the
  // lock only at the thread's first call and when layers were added.
  Shard& shard() { return thread_shard(*this); }

  // The first call of a layer in a thread, which the countdown has counted.
  void begin(Shard& shard, const Layer& layer);

  // After the countdown of the layer ran out. True when the call is to be
  // looked at. `start` is when the guard was asked.
  bool decide(Shard& shard, const Layer& layer, std::int64_t start);

  Observed observe(Shard& shard, const Layer& layer, const AttentionCall& call,
                   const ObserveContext& context);

  // `engine` is on for the layer, and the report has findings. `seen` is what
  // was done, also where the sink could not be told.
  void report(Shard& shard, const Layer& layer, const EngineReport& report,
              Observed& seen);

  GuardCounters snapshot();

  // The thread ended: its counts stay, another thread may go on with them.
  void release(Shard& shard);

  // In the child of a fork; `own` is the shard of the thread that forked, or
  // nullptr.
  void after_fork(Shard* own);

  const std::uint64_t id;
  const RuntimePolicy policy;
  const GuardHooks hooks;
  double passive_share, active_share;  // Of the budget; < 0: no limit.

  LayerTable layers;
  SequenceClock sequences;
  Canary canary;

  std::mutex mutex;  // of what follows, and of adding layers
  std::vector<std::unique_ptr<Shard>> shards;
  std::vector<std::string> groups;

 private:
  // hooks.sink is there.
  void tell_sink(const Shard& shard, const Layer& layer,
                 const EngineReport& report, ActionSet actions);
};

// Shards end with their threads, guards before or after: both sides meet in a
// registry of guards that are alive.
void register_guard(GuardState& state);
void forget_guard(GuardState& state);

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_STATE_H_
