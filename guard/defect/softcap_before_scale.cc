
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// Scores before the scale are sqrt(head_dim) times larger, so the cap bites
// that much earlier and the capped score is scaled down afterwards.
const Defect kDefectSoftcapBeforeScale = {
    .id = "softcap-before-scale",
    .summary = "the soft-cap is applied to scores that are not scaled yet",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"seq_len=24 head_dim=16 softcap=2 mask=causal_bottom_right"},
    .hides_on =
        "seq_len=24 head_dim=16 softcap=2 mask=causal_bottom_right "
        "softmax_scale=1",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            const double scale = row.problem.scale();
            if (row.problem.softcap) {
              for_each_key(keys, scores,
                           [&](std::int64_t, double& s) { s /= scale; });
              cap_scores(*row.problem.softcap, keys, scores.data());
              for_each_key(keys, scores,
                           [&](std::int64_t, double& s) { s *= scale; });
            }
            if (row.problem.alibi_max_bias)
              add_alibi(row.problem.alibi_slope(row.head),
                        row.place.bottom_right(), keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
