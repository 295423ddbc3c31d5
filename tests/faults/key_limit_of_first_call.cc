#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"
#include "tests/faults/token_limits.h"

namespace attnguard {
namespace {

struct KeyLimitOfFirstCallState {
  bool faulty;
  Shape4 shape = {0, 0, 0, 0};
  TokenLimits limits;
};

Status run_key_limit_of_first_call(const AttentionCall& call,
                                   KeyLimitOfFirstCallState& state) {
  if (!state.faulty || state.shape != call.key.shape) state.limits.clear();
  state.shape = call.key.shape;
  AttentionVariant variant;
  variant.stored = [&](const AttentionCall&, TensorRole role,
                       const KvSlot& slot, std::span<double> rows) {
    if (role != TensorRole::kKey) return;
    const std::vector<double> own = limits_of(rows, call.problem->head_dim_qk);
    saturate(state.limits.emplace(slot_of(slot), own).first->second, rows);
  };
  return run_variant(variant, call);
}

}  // namespace

// The scale of a quantised cache is found once and kept.
const Fault kFaultKeyLimitOfFirstCall = {
    .id = "key-limit-of-first-call",
    .summary =
        "keys saturate at the largest magnitude that their token had in the "
        "first call",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility"},
    .make =
        [](bool faulty) {
          return stateful_engine(KeyLimitOfFirstCallState{.faulty = faulty},
                                 run_key_limit_of_first_call);
        },
};

}  // namespace attnguard
