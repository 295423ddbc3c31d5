#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// Scores are between -1 and 1 whatever the cap: attention is nearly flat. A
// cap of 1 hides it.
const Defect kDefectSoftcapWithoutMultiply = {
    .id = "softcap-without-multiply",
    .summary =
        "capped scores are tanh(s / softcap), without the factor softcap",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"seq_len=24 head_dim=16 softcap=2 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 softcap=1 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            Problem problem = row.problem;
            if (problem.softcap) {
              const double cap = *problem.softcap;
              for_each_key(keys, scores, [&](std::int64_t, double& s) {
                s = std::tanh(s / cap);
              });
              problem.softcap.reset();
            }
            bend_scores(problem, row.head, row.place, keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
