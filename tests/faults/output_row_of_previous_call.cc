#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct OutputRowOfPreviousCallState {
  bool faulty;
  Workspace staged;
};

Status run_output_row_of_previous_call(const AttentionCall& call,
                                       OutputRowOfPreviousCallState& state) {
  const Problem& problem = *call.problem;
  Workspace fresh = attention_of(call);
  const bool first = state.staged.shape() != fresh.shape();
  if (first) state.staged = Workspace(fresh.shape());
  for_each_output_row(problem,
                      [&](std::int64_t b, std::int64_t h, std::int64_t i) {
                        const bool last = i + 1 == problem.len_q(b);
                        if (!state.faulty || first || !last)
                          state.staged.set_row(b, h, i, fresh.row(b, h, i));
                        store_row(state.staged, call, b, h, i);
                      });
  return ok_status();
}

}  // namespace

// Every element is written, and the first call is right.
const Fault kFaultOutputRowOfPreviousCall = {
    .id = "output-row-of-previous-call",
    .summary =
        "the last row of each head keeps what the previous call left in the "
        "staging buffer",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility"},
    .make =
        [](bool faulty) {
          return stateful_engine(OutputRowOfPreviousCallState{.faulty = faulty},
                                 run_output_row_of_previous_call);
        },
};

}  // namespace attnguard
