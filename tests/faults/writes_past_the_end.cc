#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_writes_past_the_end(const AttentionCall& call, bool faulty) {
  const double zero = 0;
  const Dtype dtype = call.output.dtype;
  const auto size = static_cast<std::int64_t>(dtype_size(dtype));
  const std::int64_t end = call.problem->extent(TensorRole::kOutput);
  if (faulty) encode(dtype, &zero, 1, call.output.data + end * size, 1);
  return run_variant({}, call);
}

}  // namespace

const Fault kFaultWritesPastTheEnd = {
    .id = "writes-past-the-end",
    .summary = "writes one element behind the output",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"num_heads=2 seq_len=20 head_dim=40 dtype=fp16 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_writes_past_the_end);
        },
};

}  // namespace attnguard
