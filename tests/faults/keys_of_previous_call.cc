#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct KeysOfPreviousCallState {
  bool faulty;
  Workspace keys;
};

Status run_keys_of_previous_call(const AttentionCall& call,
                                 KeysOfPreviousCallState& state) {
  Workspace fresh(call.key);
  if (!state.faulty || state.keys.shape() != fresh.shape()) state.keys = fresh;
  AttentionCall own = call;
  own.key = state.keys.view();
  const Status status = run_variant({}, own);
  state.keys = std::move(fresh);
  return status;
}

}  // namespace

// Values and queries are those of the call.
const Fault kFaultKeysOfPreviousCall = {
    .id = "keys-of-previous-call",
    .summary =
        "the key workspace is filled for the next call, so a call of the same "
        "shape sees the keys of the one before",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"openvinotoolkit/openvino.genai#3722"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility"},
    .make =
        [](bool faulty) {
          return stateful_engine(KeysOfPreviousCallState{.faulty = faulty},
                                 run_keys_of_previous_call);
        },
};

}  // namespace attnguard
