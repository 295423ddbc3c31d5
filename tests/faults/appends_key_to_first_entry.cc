#include <vector>

#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_appends_key_to_first_entry(const AttentionCall& call, bool faulty) {
  const Status status = run_variant({}, call);
  if (!faulty) return status;
  const Problem& problem = *call.problem;
  const std::int64_t last = problem.batch - 1;
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_qk));
  for (std::int64_t g = 0; g < problem.num_kv_heads; ++g) {
    call.key.load_row(last, g, problem.len_kv(last) - 1, 0, problem.head_dim_qk,
                      row.data());
    writable(call.key).store_row(0, g, problem.len_kv(0) - 1, 0,
                                 problem.head_dim_qk, row.data());
  }
  return status;
}

}  // namespace

// The entry's stride wraps. This call's output is right; the next one's is
// not.
const Fault kFaultAppendsKeyToFirstEntry = {
    .id = "appends-key-to-first-entry",
    .summary =
        "the newest key of the last batch entry lands in the first entry after "
        "the call",
    .cls = DefectClass::kIndexOverflowOob,
    .reports = {"Dao-AILab/flash-attention#772"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_appends_key_to_first_entry);
        },
};

}  // namespace attnguard
