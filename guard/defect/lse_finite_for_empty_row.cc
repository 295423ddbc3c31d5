#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The output is zero as it should be; a merge with another part of the keys
// gives the empty part a weight all the same.
const Defect kDefectLseFiniteForEmptyRow = {
    .id = "lse-finite-for-empty-row",
    .summary = "softmax_lse of a row without allowed keys is a finite sentinel",
    .cls = DefectClass::kRowSumOrMerge,
    .reports = {"flashinfer-ai/flashinfer#4452"},
    .shows_on =
        {"seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.lse = [](const VariantRow& row, double& lse) {
            if (visible_keys(row).empty()) lse = -50000;
          };
          return variant;
        },
};

}  // namespace attnguard
