#include <cstdint>

#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct SplitPartialLostInSixthCallState {
  bool faulty;
  std::int64_t calls = 0;
};

Status run_split_partial_lost_in_sixth_call(
    const AttentionCall& call, SplitPartialLostInSixthCallState& state) {
  const bool loses = ++state.calls % 6 == 0 && state.faulty;
  AttentionVariant variant;
  variant.allowed = [=](const VariantRow& row, KeyRanges& keys) {
    const RowPlace& place = row.place;
    if (!loses || row.head + 1 != row.problem.num_heads ||
        place.q_index + 1 != place.seq_len_q)
      return;
    drop((place.seq_len_kv + 1) / 2, place.seq_len_kv, keys);
  };
  return run_variant(variant, call);
}

}  // namespace

// As split-partial-lost, but in calls whose rows no other check compares with
// anything.
const Fault kFaultSplitPartialLostInSixthCall = {
    .id = "split-partial-lost-in-sixth-call",
    .summary =
        "every sixth call the second half of the keys is lost in the last row "
        "of the last head",
    .cls = DefectClass::kNondeterminismRace,
    .reports = {"ggml-org/llama.cpp#13438"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"reference"},
    .make =
        [](bool faulty) {
          return stateful_engine(
              SplitPartialLostInSixthCallState{.faulty = faulty},
              run_split_partial_lost_in_sixth_call);
        },
};

}  // namespace attnguard
