#include <cstdint>
#include <map>
#include <vector>

#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct ThirdIdenticalRequestState {
  bool faulty;
  std::map<std::vector<double>, std::int64_t> seen;  // by the first key
};

Status run_third_identical_request(const AttentionCall& call,
                                   ThirdIdenticalRequestState& state) {
  Workspace keys(call.key);
  Workspace values(call.value);
  std::vector<double> request = keys.row(0, 0, 0);
  for (double x : values.row(0, 0, 0)) request.push_back(x);
  const bool cached = ++state.seen[request] >= 3 && state.faulty;
  AttentionVariant variant;
  variant.allowed = [=](const VariantRow& row, KeyRanges& keys_seen) {
    if (cached && row.place.q_index > 0) drop(0, 1, keys_seen);
  };
  return run_variant(variant, call);
}

}  // namespace

// A prefix is stored at its second use and taken from the cache from the third
// on, cut one key short.
const Fault kFaultThirdIdenticalRequest = {
    .id = "third-identical-request",
    .summary =
        "the third request with the same inputs, and every later one, does not "
        "see the first key",
    .cls = DefectClass::kCrossSequence,
    .reports = {"waybarrios/vllm-mlx#775"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"repeatable"},
    .make =
        [](bool faulty) {
          return stateful_engine(ThirdIdenticalRequestState{.faulty = faulty},
                                 run_third_identical_request);
        },
};

}  // namespace attnguard
