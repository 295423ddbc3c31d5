#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The sum is written out one tile too early. A row weighs more than 1.
const Defect kDefectDenominatorMissesLastTile = {
    .id = "denominator-misses-last-tile",
    .summary =
        "the output has the last tile of 16 keys, the denominator has not",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.weights = [](const VariantRow&, const KeyRanges& keys,
                               std::span<double> weights) {
            const KeyRanges last =
                keys_in_tile(keys, keys.empty() ? 0 : keys.last(), kTile);
            double sum = 0;
            for_each_key(keys, weights, [&](std::int64_t j, double& p) {
              if (!last.contains(j)) sum += p;
            });
            if (sum == 0) return;  // One tile: it is not left out.
            for_each_key(keys, weights,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
