#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"
#include "tests/faults/token_limits.h"

namespace attnguard {
namespace {

struct ValueLimitOfPreviousCallState {
  bool faulty;
  Shape4 shape = {0, 0, 0, 0};
  TokenLimits limits;
};

Status run_value_limit_of_previous_call(const AttentionCall& call,
                                        ValueLimitOfPreviousCallState& state) {
  if (!state.faulty || state.shape != call.value.shape) state.limits.clear();
  state.shape = call.value.shape;
  AttentionVariant variant;
  variant.stored = [&](const AttentionCall&, TensorRole role,
                       const KvSlot& slot, std::span<double> rows) {
    if (role != TensorRole::kValue) return;
    const std::vector<double> own = limits_of(rows, call.problem->head_dim_v);
    saturate(state.limits.emplace(slot_of(slot), own).first->second, rows);
    state.limits[slot_of(slot)] = own;
  };
  return run_variant(variant, call);
}

}  // namespace

// A statistic that is brought up to date after its use.
const Fault kFaultValueLimitOfPreviousCall = {
    .id = "value-limit-of-previous-call",
    .summary =
        "values saturate at the largest magnitude that their token had in the "
        "call before",
    .cls = DefectClass::kFutureLeakGlobalStat,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"repeatable"},
    .make =
        [](bool faulty) {
          return stateful_engine(
              ValueLimitOfPreviousCallState{.faulty = faulty},
              run_value_limit_of_previous_call);
        },
};

}  // namespace attnguard
