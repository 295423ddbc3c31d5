#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The rows are right as long as the first page is resident. One key of many
// with no weight: half of the rows differ, by little.
const Defect kDefectSecondHalfOfRowsLosesKeyZero = {
    .id = "second-half-of-rows-loses-key-zero",
    .summary = "rows in the second half of the sequence miss key 0",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=80 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (2 * row.place.q_index >= row.place.seq_len_q &&
                keys.count() > 1)
              drop(0, 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
