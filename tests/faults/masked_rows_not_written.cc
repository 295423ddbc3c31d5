#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_masked_rows_not_written(const AttentionCall& call, bool faulty) {
  AttentionVariant variant;
  variant.keeps = [=](const VariantRow& row) {
    return !faulty || !visible_keys(row).empty();
  };
  return run_variant(variant, call);
}

}  // namespace

// The tile loop has nothing to do and leaves before the epilogue.
const Fault kFaultMaskedRowsNotWritten = {
    .id = "masked-rows-not-written",
    .summary = "rows without an allowed key are skipped, not written as zeros",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"flashinfer-ai/flashinfer#1533", "pytorch/pytorch#193632"},
    .shows_on = {"num_heads=2 seq_len_q=20 seq_len_kv=12 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_masked_rows_not_written);
        },
};

}  // namespace attnguard
