#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The product with V stops one tile too early. A row weighs less than 1.
const Defect kDefectOutputMissesLastTile = {
    .id = "output-misses-last-tile",
    .summary =
        "the denominator has the last tile of 16 keys, the output has not",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.weights = [](const VariantRow&, const KeyRanges& keys,
                               std::span<double> weights) {
            if (keys.empty() || keys.last() < kTile) return;
            const KeyRanges last = keys_in_tile(keys, keys.last(), kTile);
            for_each_key(last, weights, [](std::int64_t, double& p) { p = 0; });
          };
          return variant;
        },
};

}  // namespace attnguard
