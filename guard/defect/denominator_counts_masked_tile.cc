#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The sum of exponentials runs over the tile before its mask is applied, the
// product with the values after it.
const Defect kDefectDenominatorCountsMaskedTile = {
    .id = "denominator-counts-masked-tile",
    .summary =
        "the denominator counts the masked keys of the diagonal tile, the "
        "output does not",
    .cls = DefectClass::kFutureLeakNormaliser,
    .reports = {"lucidrains/memory-compressed-attention#2"},
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=40 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty()) return;
            const std::int64_t next = keys.last() + 1;
            see(row, next, round_up(next, kTile), keys);
          };
          variant.weights = [](const VariantRow& row, const KeyRanges& keys,
                               std::span<double> weights) {
            edit_masked(row, keys, weights, [](double& p) { p = 0; });
          };
          return variant;
        },
};

}  // namespace attnguard
