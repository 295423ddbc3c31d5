#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// key < query in place of key <= query. The first row is left without any key.
const Defect kDefectSelfNotVisible = {
    .id = "self-not-visible",
    .summary = "under a causal mask a row does not see its own token",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty() || row.problem.mask.has("full")) return;
            drop(row.place.bottom_right(), row.place.bottom_right() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
