#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct LongestLengthSoFarState {
  bool faulty;
  Workspace keys, values;  // as long as the longest request so far
};

// Puts the rows of the call over those that the workspace holds.
void refresh(const ConstTensorView& from, Workspace& workspace) {
  Workspace fresh(from);
  Shape4 shape = from.shape;
  const Shape4 had = workspace.shape();
  if (had[0] != shape[0] || had[1] != shape[1] || had[3] != shape[3] ||
      had[2] < shape[2]) {
    workspace = std::move(fresh);
    return;
  }
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t g = 0; g < shape[1]; ++g)
      for (std::int64_t j = 0; j < shape[2]; ++j)
        workspace.set_row(b, g, j, fresh.row(b, g, j));
}

Status run_longest_length_so_far(const AttentionCall& call,
                                 LongestLengthSoFarState& state) {
  refresh(call.key, state.keys);
  refresh(call.value, state.values);
  const Problem& own = *call.problem;
  Problem longer = own;
  longer.seq_len_kv = {state.keys.shape()[2]};
  AttentionCall padded = call;
  padded.problem = &longer;
  padded.key = state.keys.view();
  padded.value = state.values.view();
  AttentionVariant variant;
  variant.allowed = [&](const VariantRow& row, KeyRanges& keys) {
    own.mask.allowed(own.row(row.place.batch, row.place.q_index), keys);
    if (state.faulty)
      see(row, own.len_kv(row.place.batch), row.place.seq_len_kv, keys);
  };
  return run_variant(variant, padded);
}

}  // namespace

// The first problem is right: nothing longer came before it.
const Fault kFaultLongestLengthSoFar = {
    .id = "longest-length-so-far",
    .summary =
        "rows see as many keys as the longest request had so far; those behind "
        "their own are leftovers",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .reports = {"ggml-org/whisper.cpp#3941"},
    .shows_on = {"num_heads=2 seq_len=48 head_dim=64",
                 "num_heads=2 seq_len=40 head_dim=64"},
    .seen_by = {"visibility", "row-sum"},
    .make =
        [](bool faulty) {
          return stateful_engine(LongestLengthSoFarState{.faulty = faulty},
                                 run_longest_length_so_far);
        },
};

}  // namespace attnguard
