#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct SplitPartialLostState {
  bool faulty;
  std::int64_t calls = 0;
};

Status run_split_partial_lost(const AttentionCall& call,
                              SplitPartialLostState& state) {
  const bool loses = ++state.calls % 4 == 0 && state.faulty;
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

// A counter in place of the race of two parts that add to one result: the
// order of real threads would be undefined behaviour here.
const Fault kFaultSplitPartialLost = {
    .id = "split-partial-lost",
    .summary =
        "every fourth call the second half of the keys is lost in the last row "
        "of the last head",
    .cls = DefectClass::kNondeterminismRace,
    .reports = {"ggml-org/llama.cpp#13438"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"reference"},
    .make =
        [](bool faulty) {
          return stateful_engine(SplitPartialLostState{.faulty = faulty},
                                 run_split_partial_lost);
        },
};

}  // namespace attnguard
