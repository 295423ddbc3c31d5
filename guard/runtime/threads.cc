// Threads and processes: shards are found through thread-local storage, given
// back when a thread ends, and made new in the child of a fork.
#include <pthread.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "guard/runtime/state.h"

namespace attnguard::runtime_internal {

constinit thread_local ThreadCache thread_cache;

namespace {

std::atomic<std::uint32_t> forks{0};

// Guards that are alive. Never destroyed: threads may end after main.
struct Registry {
  std::mutex mutex;
  std::map<std::uint64_t, GuardState*> guards;
};

Registry& registry() {
  static Registry* const the_one = new Registry;
  return *the_one;
}

// The guards that a thread used, and its shard of each.
class ThreadShards {
 public:
  ~ThreadShards() {
    const std::lock_guard lock(registry().mutex);
    for (const auto& [id, shard] : shards_) {
      const auto found = registry().guards.find(id);
      if (found != registry().guards.end()) found->second->release(*shard);
    }
    thread_cache = {};
  }

  Shard* find(std::uint64_t id) const {
    for (const auto& [its_id, shard] : shards_)
      if (its_id == id) return shard;
    return nullptr;
  }

  void add(std::uint64_t id, Shard* shard) {
    // Guards that are gone leave no trace in threads that live on.
    const std::lock_guard lock(registry().mutex);
    std::erase_if(shards_, [](const auto& entry) {
      return !registry().guards.contains(entry.first);
    });
    shards_.emplace_back(id, shard);
  }

 private:
  std::vector<std::pair<std::uint64_t, Shard*>> shards_;
};

ThreadShards& thread_shards() {
  thread_local ThreadShards shards;
  return shards;
}

// Locks are taken in the order registry, guard: here and everywhere else.
void before_fork() {
  registry().mutex.lock();
  for (const auto& [id, state] : registry().guards) state->mutex.lock();
}

void in_parent() {
  for (const auto& [id, state] : registry().guards) state->mutex.unlock();
  registry().mutex.unlock();
}

void in_child() {
  forks.fetch_add(1);
  for (const auto& [id, state] : registry().guards) {
    state->mutex.unlock();
    state->after_fork(thread_shards().find(id));
  }
  registry().mutex.unlock();
}

Shard* take_shard(GuardState& state) {
  const std::lock_guard lock(state.mutex);
  for (const std::unique_ptr<Shard>& shard : state.shards) {
    bool free = false;
    if (!shard->in_use.compare_exchange_strong(free, true)) continue;
    const std::int64_t now = monotonic_now();
    shard->start.set(now);
    shard->budget.start(now);
    shard->savings.start(now);
    return shard.get();
  }
  // A shard's number is never used twice, as its random numbers hang on it.
  return state.shards
      .emplace_back(
          std::make_unique<Shard>(state.shards.size() + 1, state.passive_share,
                                  state.active_share, state.policy.window))
      .get();
}

}  // namespace

std::uint32_t fork_generation() {
  return forks.load(std::memory_order_relaxed);
}

void register_guard(GuardState& state) {
  static std::once_flag handlers;
  std::call_once(handlers,
                 [] { pthread_atfork(before_fork, in_parent, in_child); });
  const std::lock_guard lock(registry().mutex);
  registry().guards[state.id] = &state;
}

void forget_guard(GuardState& state) {
  const std::lock_guard lock(registry().mutex);
  registry().guards.erase(state.id);
}

Shard& thread_shard(GuardState& state) {
  Shard* shard = thread_shards().find(state.id);
  if (shard == nullptr) {
    shard = take_shard(state);
    thread_shards().add(state.id, shard);
  }
  if (shard->num_layers < state.layers.size()) {
    const std::lock_guard lock(state.mutex);
    shard->reserve(state.layers.size());
  }
  thread_cache = {state.id, shard->num_layers, shard->countdowns.get()};
  return *shard;
}

void GuardState::release(Shard& shard) {
  const std::lock_guard lock(mutex);
  shard.elapsed_before.add(monotonic_now() - shard.start.get());
  shard.in_use.store(false);
}

void GuardState::after_fork(Shard* own) {
  // Other threads are gone, perhaps in the middle of a write: what they had is
  // left where it lies, never touched again.
  for (std::unique_ptr<Shard>& shard : shards)
    if (shard.get() != own) static_cast<void>(shard.release());
  std::erase_if(shards, [](const auto& shard) { return shard == nullptr; });
  const std::int64_t now = monotonic_now();
  for (const std::unique_ptr<Shard>& shard : shards) {
    shard->tally.clear();
    shard->shown_calls = 0;
    shard->elapsed_before.set(0);
    shard->start.set(now);
    for (std::uint32_t i = 0; i < shard->num_layers; ++i) {
      shard->slots[i].drawn.set(0);
      shard->slots[i].gap = 0;
      shard->countdowns[i].store(0);
    }
  }
  canary.after_fork();
  if (hooks.sink) hooks.sink->after_fork_in_child();
}

}  // namespace attnguard::runtime_internal
