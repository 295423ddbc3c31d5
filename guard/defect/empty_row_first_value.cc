#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The loop runs at least once.
const Defect kDefectEmptyRowFirstValue = {
    .id = "empty-row-first-value",
    .summary = "a row without allowed keys is the value of key 0",
    .cls = DefectClass::kNanInf,
    .shows_on =
        {"seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty() && row.place.seq_len_kv > 0) keys.append(0, 1);
          };
          return variant;
        },
};

}  // namespace attnguard
