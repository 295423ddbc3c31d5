#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct FirstCallWithoutScaleState {
  bool faulty;
  std::int64_t calls = 0;
};

Status run_first_call_without_scale(const AttentionCall& call,
                                    FirstCallWithoutScaleState& state) {
  AttentionVariant variant;
  if (state.calls++ == 0 && state.faulty)
    variant.scale = [](const Problem&) { return 1.0; };
  return run_variant(variant, call);
}

}  // namespace

// A view that is built late resets it. A warm-up hides that.
const Fault kFaultFirstCallWithoutScale = {
    .id = "first-call-without-scale",
    .summary = "the scale is 1 in the first call after start",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"vllm-project/vllm#51091"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"reference", "repeatable"},
    .make =
        [](bool faulty) {
          return stateful_engine(FirstCallWithoutScaleState{.faulty = faulty},
                                 run_first_call_without_scale);
        },
};

}  // namespace attnguard
