#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The mask is tested only on the diagonal tile; below it a draft tree
// forbids keys too. By position they are past, so no later token leaks.
const Defect kDefectTreeBranchesSeeEachOther = {
    .id = "tree-branches-see-each-other",
    .summary =
        "a drafted token sees all drafted tokens before it, siblings included",
    .cls = DefectClass::kCrossSequence,
    .reports = {"PaddlePaddle/FastDeploy#3514"},
    .shows_on = {"seq_len_q=6 seq_len_kv=24 head_dim=16 "
                 "mask=tree(parents=-1:0:0:1:2:2)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask.has("tree"))
              see(row, 0, row.place.bottom_right() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
