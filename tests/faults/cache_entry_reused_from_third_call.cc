#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct CacheEntryReusedFromThirdCallState {
  bool faulty;
  std::int64_t calls = 0;
  Workspace keys, values;
};

Status run_cache_entry_reused_from_third_call(
    const AttentionCall& call, CacheEntryReusedFromThirdCallState& state) {
  AttentionCall own = call;
  if (state.keys.shape() != call.key.shape) state.calls = 0;
  ++state.calls;
  if (state.calls <= 2 || !state.faulty) {
    state.keys = Workspace(call.key);
    state.values = Workspace(call.value);
  }
  own.key = state.keys.view();
  own.value = state.values.view();
  return run_variant({}, own);
}

}  // namespace

// An entry is made at the second use and identified by its length alone.
const Fault kFaultCacheEntryReusedFromThirdCall = {
    .id = "cache-entry-reused-from-third-call",
    .summary =
        "keys and values of the second call answer the third and all later "
        "ones of the same shape",
    .cls = DefectClass::kCrossSequence,
    .reports = {"waybarrios/vllm-mlx#775",
                "openvinotoolkit/openvino.genai#3722"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility"},
    .make =
        [](bool faulty) {
          return stateful_engine(
              CacheEntryReusedFromThirdCallState{.faulty = faulty},
              run_cache_entry_reused_from_third_call);
        },
};

}  // namespace attnguard
