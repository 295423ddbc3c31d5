#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_writes_before_the_start(const AttentionCall& call, bool faulty) {
  const double zero = 0;
  const Dtype dtype = call.output.dtype;
  if (faulty) encode(dtype, &zero, 1, call.output.data - dtype_size(dtype), 1);
  return run_variant({}, call);
}

}  // namespace

const Fault kFaultWritesBeforeTheStart = {
    .id = "writes-before-the-start",
    .summary = "writes one element before the output",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"num_heads=2 seq_len=20 head_dim=40 dtype=fp16 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_writes_before_the_start);
        },
};

}  // namespace attnguard
