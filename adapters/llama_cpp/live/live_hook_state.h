// What a LiveHook keeps: the layers that it met, the cells of their caches, the
// present batch and graph. live_hook.cc follows the graph, live_hook_host.cc
// what the host says.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_LIVE_HOOK_STATE_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_LIVE_HOOK_STATE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/llama_cpp/live/attention_node.h"
#include "adapters/llama_cpp/live/batch_rows.h"
#include "adapters/llama_cpp/live/cache_watch.h"
#include "adapters/llama_cpp/live/call_builder.h"
#include "adapters/llama_cpp/live/cell_ledger.h"
#include "adapters/llama_cpp/live/engine_checks.h"
#include "adapters/llama_cpp/live/live_hook.h"
#include "adapters/llama_cpp/live/rounding.h"

namespace attnguard::llama_cpp {

class LiveHook::State {
 public:
  State(Guard& guard, LiveHookOptions options);

  bool ask(const ggml_tensor* node);
  void computed(const ggml_tensor* node);

  void begin_batch(std::int32_t num_tokens, const std::int32_t* positions,
                   const std::int32_t* num_sequences,
                   const std::int32_t* const* sequences);
  void batch_failed();
  void cleared();
  void removed(std::int32_t sequence, std::int32_t p0, std::int32_t p1);
  void copied(std::int32_t from, std::int32_t to, std::int32_t p0,
              std::int32_t p1);
  void kept(std::int32_t sequence);
  void shifted(std::int32_t sequence, std::int32_t p0, std::int32_t p1,
               std::int32_t by);
  HookCounters counters() const;

 private:
  static constexpr int kNoLayer = std::numeric_limits<int>::max();

  struct AtomicCheck {
    std::atomic<std::uint64_t> runs{0}, judged{0}, violations{0}, findings{0};
  };

  struct Layer {
    LayerHandle handle;
    std::string name;
    bool own_checks = true;  // The policy's `engine` is on.
    Storage storage;         // What the numerics of its calls are made of.
    CellPrints prints;
  };

  // The cells of the layers that share one tensor of indices.
  struct Cache {
    CellLedger ledger;
    const void* index = nullptr;  // In the present graph.
  };

  Layer& layer(int number);
  LayerRule rule(int number) const;
  bool decide(int number);
  void begin_graph(const ggml_tensor* write);
  void note_write(const ggml_tensor* write, int number);
  void tell_guard();
  Cache* cache_of(int number);
  std::uint64_t id(std::int32_t sequence) const {
    return sequence_base_ + static_cast<std::uint64_t>(sequence);
  }

  void look_at(const ggml_tensor* node);
  void check_write(const ggml_tensor* node);
  void keep_query(const ggml_tensor* softmax);
  void judge(const ggml_tensor* node);
  CheckOutcome judge_cells(const AttentionNode& node, Layer& layer,
                           Cache& cache);
  std::string_view build_call(const AttentionNode& node, Cache* cache);
  void make_own_checks(const AttentionNode& node, Layer& layer, Cache* cache,
                       bool has_call);
  void observe(Layer& layer);
  void decline(std::string_view reason);
  void lose_step(std::string_view reason);
  void count(EngineCheck check, const CheckOutcome& outcome, const Layer& layer,
             bool has_call);
  void report(EngineCheck check, const CheckOutcome& outcome,
              const Layer& layer, bool has_call);
  std::string rows_text() const;

  Guard& guard_;
  LiveHookOptions options_;
  std::uint64_t sequence_base_;

  std::deque<Layer> layers_;       // Addresses stay.
  std::vector<Layer*> by_number_;  // nullptr: not met
  std::vector<int> cache_number_;  // By layer; -1: none
  std::deque<Cache> caches_;

  BatchRows batch_;
  bool told_ = false;           // begin_batch was called at least once
  bool in_step_ = false;        // The ledgers know all that lies in the caches.
  int last_layer_ = kNoLayer;   // whose keys were written in this graph
  std::size_t caches_met_ = 0;  // in this graph

  int decided_ = kNoLayer;  // The layer that `look_` is about.
  bool look_ = false;
  const void* checked_mask_ = nullptr;  // in this graph

  // In the present node: what the guard counts itself, and what the host and
  // its sink take with a finding, which is not budgeted.
  std::chrono::nanoseconds not_charged_{0};
  CacheWrite write_;
  std::vector<float> query_;  // A copy, [stream, head, row, channel].
  Place kept_query_;
  CallBuilder builder_;

  std::atomic<std::uint64_t> graphs_{0}, attention_{0}, sampled_{0},
      observed_{0}, not_told_{0}, declined_{0};
  std::array<AtomicCheck, kNumEngineChecks> checks_;
  mutable std::mutex reason_mutex_;
  std::string reason_;
};

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_LIVE_HOOK_STATE_H_
