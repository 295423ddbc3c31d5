#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// No tile has work for it, and the store is at the end of the work. What the
// allocator left there goes on.
const Defect kDefectEmptyRowUnwritten = {
    .id = "empty-row-unwritten",
    .summary = "a row without allowed keys is never written",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"flashinfer-ai/flashinfer#1533", "pytorch/pytorch#193632"},
    .shows_on =
        {"seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.keeps = [](const VariantRow& row) {
            return !visible_keys(row).empty();
          };
          return variant;
        },
};

}  // namespace attnguard
