#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Fine on random inputs of the usual size, NaN as soon as one score is large.
const Defect kDefectNoMaxSubtraction = {
    .id = "no-max-subtraction",
    .summary =
        "exponentials in fp32 without subtracting the maximum: scores above 88 "
        "overflow",
    .cls = DefectClass::kNanInf,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            float sum = 0;
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              const float e = std::exp(static_cast<float>(s));
              sum += e;
              s = e;
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
