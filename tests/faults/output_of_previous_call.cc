#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct OutputOfPreviousCallState {
  bool faulty;
  Workspace late;
};

Status run_output_of_previous_call(const AttentionCall& call,
                                   OutputOfPreviousCallState& state) {
  Workspace fresh = attention_of(call);
  if (!state.faulty || state.late.shape() != fresh.shape()) state.late = fresh;
  for_each_output_row(*call.problem,
                      [&](std::int64_t b, std::int64_t h, std::int64_t i) {
                        store_row(state.late, call, b, h, i);
                      });
  state.late = std::move(fresh);
  return ok_status();
}

}  // namespace

// Two buffers that take turns, and a missing wait.
const Fault kFaultOutputOfPreviousCall = {
    .id = "output-of-previous-call",
    .summary =
        "each call from the second on returns the result of the one before",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility", "row-sum"},
    .make =
        [](bool faulty) {
          return stateful_engine(OutputOfPreviousCallState{.faulty = faulty},
                                 run_output_of_previous_call);
        },
};

}  // namespace attnguard
