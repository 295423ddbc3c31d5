// The live guard inside llama.cpp: a cb_eval that hands a sampled few of the
// model's attention calls to a Guard, with flash attention on or off.
//
//   LiveHook hook(*guard);
//   llama_context_params params = llama_context_default_params();
//   params.cb_eval = LiveHook::evaluate;
//   params.cb_eval_user_data = &hook;
//   ...
//   hook.begin_batch(batch);              // before each llama_decode
//   if (llama_decode(context, batch) != 0) hook.batch_failed();
//
// It is told which sequences and positions are decoded, and works out from the
// cells that the graph writes which keys each row may see. The mask that
// llama.cpp builds is not trusted but checked. Rows are recomputed from query,
// cache and output as they lie in the graph.
//
// Whoever edits the cache (llama_memory_...) says so here. A host that never
// calls begin_batch gets less: rows are judged by the engine's own mask, and
// the hook's own checks of mask and cells have nothing to compare with.
//
// Tensors must lie where the host can read. One hook serves one llama_context,
// from the threads that llama_decode runs on, one at a time; counters() may be
// called from any.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_LIVE_HOOK_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_LIVE_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "adapters/llama_cpp/live/findings.h"
#include "guard/runtime/guard.h"

struct ggml_tensor;  // ggml's own, C

namespace attnguard::llama_cpp {

struct LiveHookOptions {
  bool causal = true;  // false: llama_set_causal_attn(context, false)

  // How many tokens a row of a layer sees, itself among them; 0: all. Absent:
  // all in every layer. See llama_model_n_swa.
  std::function<std::int32_t(int layer)> window;

  // What the scores are multiplied with. Absent: whatever the graph says, so
  // that a wrong scale in the graph itself goes unseen.
  std::optional<double> softmax_scale;

  // Called too when the hook's own checks find something, from the decoding
  // thread. They are reported to the guard (Guard::report) in any case, and so
  // are counted, logged and dumped as the policy says of its check `engine`.
  // Where `engine` is off for a layer, the hook's checks are not made in it.
  // Violations do not throw here, whatever the policy says: llama.cpp calls the
  // hook from C.
  std::function<void(const EngineFinding&)> on_finding;
};

class LiveHook {
 public:
  // The guard must outlive the hook.
  explicit LiveHook(Guard& guard, LiveHookOptions options = {});
  ~LiveHook();
  LiveHook(const LiveHook&) = delete;
  LiveHook& operator=(const LiveHook&) = delete;

  // llama_context_params::cb_eval; `hook` is a LiveHook.
  static bool evaluate(ggml_tensor* node, bool ask, void* hook);

  // The tokens of the next llama_decode. Absent positions and sequences mean
  // what they mean there: the next position, of sequence 0.
  void begin_batch(std::int32_t num_tokens, const std::int32_t* positions,
                   const std::int32_t* num_sequences,
                   const std::int32_t* const* sequences);

  // The same for a llama_batch.
  template <typename LlamaBatch>
  void begin_batch(const LlamaBatch& batch) {
    begin_batch(batch.n_tokens, batch.pos, batch.n_seq_id, batch.seq_id);
  }

  // llama_decode did not return 0: llama.cpp took back what it had written.
  void batch_failed();

  // What llama_memory_clear, seq_rm, seq_cp, seq_keep and seq_add did, with the
  // same arguments.
  void cleared();
  void removed(std::int32_t sequence, std::int32_t p0, std::int32_t p1);
  void copied(std::int32_t from, std::int32_t to, std::int32_t p0,
              std::int32_t p1);
  void kept(std::int32_t sequence);
  void shifted(std::int32_t sequence, std::int32_t p0, std::int32_t p1,
               std::int32_t by);

  HookCounters counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_LIVE_HOOK_H_
