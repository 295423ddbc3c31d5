// The live guard: stays linked in a serving engine, looks at a sampled few of
// its attention calls, and keeps what that costs under a budget.
//
//   auto guard = Guard::create(policy, {.sink = sink});          // once
//   LayerHandle layer = guard.value()->layer("blk.7.attn");      // once a
//   layer AttentionCallback guarded = guard.value()->wrap(mine, layer);  // or:
//
//   my_attention(...);                                // each step
//   if (guard->sampled(layer)) {                      // a few nanoseconds
//     ... fill an AttentionCall ...
//     guard->observe(layer, call, context);
//   }
//
// Every function may be called from any thread at any time. sampled() and
// observe() take no lock; they allocate only while a thread's buffers grow to
// the sizes that it meets. In the child of a fork the guard goes on with fresh
// counters. The guard must outlive the callbacks that it wrapped.
#ifndef ATTNGUARD_GUARD_RUNTIME_GUARD_H_
#define ATTNGUARD_GUARD_RUNTIME_GUARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "guard/base/status.h"
#include "guard/engine/engine.h"
#include "guard/policy/runtime_policy.h"
#include "guard/runtime/counters.h"
#include "guard/runtime/engine_report.h"
#include "guard/runtime/observe_context.h"
#include "guard/runtime/sink.h"

namespace attnguard {

// A layer that was registered; cheap to copy, valid as long as its guard.
struct LayerHandle {
  std::uint32_t index = 0;
};

struct LayerOptions {
  // What metrics are labelled with. Empty: the name with numbers replaced by
  // '*', so that the layers of a model are one group.
  std::string group;

  // How the kernel rounds; absent: default_numerics.
  std::function<Numerics(const Problem&)> numerics;

  // Same inputs, same bits. false: the shadow check allows rounding.
  bool deterministic = true;
};

struct GuardHooks {
  std::shared_ptr<ViolationSink> sink;  // nullptr: violations are counted only

  // Where the engine's tensors live; nullptr: host memory. Where the host may
  // not read, calls are counted as skipped.
  std::shared_ptr<Memory> memory;
};

// What observe() did.
struct Observed {
  int checks = 0;         // Checks that were made.
  int violations = 0;     // Checks that found something.
  ActionSet actions = 0;  // Of those, together. kActionThrow is left to whoever
                          // called observe(); wrap() throws.
  bool fell_back = false;  // The output now is the reference's.
};

namespace runtime_internal {

// What sampled() needs of the calling thread. One for each thread: that of the
// guard it used last.
struct ThreadCache {
  std::uint64_t guard_id = 0;  // 0: none
  std::uint32_t num_layers = 0;
  std::atomic<std::int64_t>* countdowns = nullptr;  // [num_layers]
};
extern constinit thread_local ThreadCache thread_cache;

struct GuardState;

}  // namespace runtime_internal

class Guard {
 public:
  // Fails when the policy is not valid; the message names the field.
  static Result<std::unique_ptr<Guard>> create(RuntimePolicy policy,
                                               GuardHooks hooks = {});
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Registers a layer, or finds the one of that name. Takes a lock: call it
  // when the model is loaded, not in each step.
  LayerHandle layer(std::string_view name, const LayerOptions& options = {});

  // A callback that runs `kernel` and observes a sampled few of its calls.
  // Throws ViolationError where the policy says throw.
  AttentionCallback wrap(AttentionCallback kernel, LayerHandle layer);

  // Whether this call is to be observed. Ask once for each call.
  bool sampled(LayerHandle layer) noexcept {
    runtime_internal::ThreadCache& cache = runtime_internal::thread_cache;
    if (cache.guard_id == id_ && layer.index < cache.num_layers) {
      std::atomic<std::int64_t>& countdown = cache.countdowns[layer.index];
      const std::int64_t left = countdown.load(std::memory_order_relaxed) - 1;
      countdown.store(left, std::memory_order_relaxed);
      if (left > 0) return false;
    }
    return sampled_slowly(layer);
  }

  // Judges a finished call. Call it only where sampled() said so (in tests and
  // replays: whenever). The output may be written where the policy says
  // fallback. Never throws.
  Observed observe(LayerHandle layer, const AttentionCall& call,
                   const ObserveContext& context = {}) noexcept;

  // Hands over what the caller itself found wrong in the engine, and what the
  // guard cannot see: a mask, a cache cell, a weight. It is counted under the
  // check `engine` and goes to the sink with the severity and the actions that
  // the policy has for that check and this layer: log, callback and dump with
  // their limits, and abort. In the result are one check, one violation and its
  // actions; nothing at all where there are no findings, the layer is not known
  // or `engine` is off for it.
  //
  // Report a call before it is observed, so that both have the same number in
  // dumps; sampled() need not be asked. Any thread. Without findings it takes
  // no lock and allocates nothing. With some it locks only at a thread's first
  // use of the guard; what the sink takes is no part of the budget. Never
  // throws: kActionThrow is left to the caller, and a hook that is called from
  // C ignores it. kActionFallback does not apply and is never among the
  // actions: the guard did not judge the output.
  Observed report(LayerHandle layer, const EngineReport& report) noexcept;

  // Time that the caller spent for the guard in this thread, beside observe():
  // filling the call, checks of its own. It counts against the budget.
  void charge(std::int64_t nanoseconds) noexcept;

  // What happened to a sequence's cache since the last call, in all layers.
  // Needed only where ObserveContext::sequences are given; no lock.
  //   append:   tokens [first, first + count) were written
  //   truncate: tokens from `length` on are gone (speculative decoding)
  //   fork:     `child` starts with the tokens of `parent`
  //   evict:    the sequence is gone, or older tokens moved or were dropped
  void append(std::uint64_t sequence, std::int64_t first, std::int64_t count);
  void truncate(std::uint64_t sequence, std::int64_t length);
  void fork(std::uint64_t parent, std::uint64_t child);
  void evict(std::uint64_t sequence);

  // Sums over all threads; takes a lock that no observing thread waits for.
  GuardCounters counters() const;

  const RuntimePolicy& policy() const;
  std::string layer_name(LayerHandle layer) const;
  RuntimeSettings layer_settings(LayerHandle layer) const;

 private:
  explicit Guard(std::unique_ptr<runtime_internal::GuardState> state);
  bool sampled_slowly(LayerHandle layer) noexcept;

  std::uint64_t id_;  // Never used twice in a process.
  std::unique_ptr<runtime_internal::GuardState> state_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_GUARD_H_
