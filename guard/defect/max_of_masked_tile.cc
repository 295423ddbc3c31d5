#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Any reference cancels in the quotient, until it is so large that nothing is
// left: in fp32 a masked score 104 above the row's own turns the row into 0/0.
// Below that the last bits depend on what is masked.
const Defect kDefectMaxOfMaskedTile = {
    .id = "max-of-masked-tile",
    .summary =
        "the maximum runs over the whole tile of 16 keys, masked ones included",
    .cls = DefectClass::kNanInf,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty()) return;
            const std::int64_t next = keys.last() + 1;
            see(row, next, round_up(next, kTile), keys);
          };
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const KeyRanges visible = visible_keys(row);
            const double reference = largest_score(keys, scores);
            float sum = 0;
            for_each_key(keys, scores, [&](std::int64_t j, double& s) {
              const float p = visible.contains(j)
                                  ? std::exp(static_cast<float>(s - reference))
                                  : 0.0F;
              sum += p;
              s = p;
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
