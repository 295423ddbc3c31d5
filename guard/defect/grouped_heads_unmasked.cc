#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The mask hangs on a branch that the problem does not take: here that of
// num_kv_heads = num_heads. Conditions on which code dispatches need a problem
// each, like sizes do.
const Defect kDefectGroupedHeadsUnmasked = {
    .id = "grouped-heads-unmasked",
    .summary = "no mask when heads share keys",
    .cls = DefectClass::kFutureLeakDirect,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on = "num_heads=4 seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.group_size() > 1) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
