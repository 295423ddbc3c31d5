#include <vector>

#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"
#include "tests/faults/token_limits.h"

namespace attnguard {
namespace {

struct ValueLimitOfFirstCallState {
  bool faulty;
  Shape4 shape = {0, 0, 0, 0};
  TokenLimits limits;
};

Status run_value_limit_of_first_call(const AttentionCall& call,
                                     ValueLimitOfFirstCallState& state) {
  if (!state.faulty || state.shape != call.value.shape) state.limits.clear();
  state.shape = call.value.shape;
  AttentionVariant variant;
  variant.stored = [&](const AttentionCall&, TensorRole role,
                       const KvSlot& slot, std::span<double> rows) {
    if (role != TensorRole::kValue) return;
    const std::vector<double> own = limits_of(rows, call.problem->head_dim_v);
    saturate(state.limits.emplace(slot_of(slot), own).first->second, rows);
  };
  return run_variant(variant, call);
}

}  // namespace

// The scale of a quantised cache is found once and kept. Only values larger
// than the first call's show it.
const Fault kFaultValueLimitOfFirstCall = {
    .id = "value-limit-of-first-call",
    .summary =
        "values saturate at the largest magnitude that their token had in the "
        "first call",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"reference"},
    .make =
        [](bool faulty) {
          return stateful_engine(ValueLimitOfFirstCallState{.faulty = faulty},
                                 run_value_limit_of_first_call);
        },
};

}  // namespace attnguard
