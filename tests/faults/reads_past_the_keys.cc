#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_reads_past_the_keys(const AttentionCall& call, bool faulty) {
  const Problem& own = *call.problem;
  Problem longer = own;
  longer.seq_len_kv = {own.max_len_kv() + 1};
  AttentionCall wide = call;
  wide.problem = &longer;
  // The strides stay: the row behind a slot is the next slot's first, and
  // behind the last one lies memory that is not the tensor's.
  ++wide.key.shape[2];
  ++wide.value.shape[2];
  AttentionVariant variant;
  variant.allowed = [&](const VariantRow& row, KeyRanges& keys) {
    const std::int64_t length = own.len_kv(row.place.batch);
    own.mask.allowed(own.row(row.place.batch, row.place.q_index), keys);
    if (faulty && keys.contains(length - 1)) see(row, length, length + 1, keys);
  };
  return run_variant(variant, faulty ? wide : call);
}

}  // namespace

const Fault kFaultReadsPastTheKeys = {
    .id = "reads-past-the-keys",
    .summary =
        "the loop over keys runs one too far and reads what lies behind the "
        "tensors",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"num_heads=2 num_kv_heads=1 seq_len=20 head_dim=64"},
    .seen_by = {"row-sum", "visibility"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_reads_past_the_keys);
        },
};

}  // namespace attnguard
