
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// slope * (key - query) equals -slope * distance as long as no key lies
// after its query. In an encoder the last keys win.
const Defect kDefectAlibiSignedDistance = {
    .id = "alibi-signed-distance",
    .summary =
        "ALiBi takes the signed distance: keys after the query are favoured",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"num_heads=2 seq_len=24 head_dim=16 alibi_max_bias=8"},
    .hides_on =
        "num_heads=4 seq_len=24 head_dim=16 alibi_max_bias=8 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            if (row.problem.softcap)
              cap_scores(*row.problem.softcap, keys, scores.data());
            const auto own = static_cast<double>(row.place.bottom_right());
            const double slope = row.problem.alibi_slope(row.head);
            for_each_key(keys, scores, [&](std::int64_t j, double& s) {
              s += slope * (static_cast<double>(j) - own);
            });
          };
          return variant;
        },
};

}  // namespace attnguard
