#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// A first part without keys hands on the sink that it started from, and the
// next one starts from it again.
const Defect kDefectSinkPublishedByEmptyPart = {
    .id = "sink-published-by-empty-part",
    .summary = "where the first 16 keys are all masked, the sink counts twice",
    .cls = DefectClass::kRowSumOrMerge,
    .reports = {"ROCm/rocm-libraries#12227"},
    .shows_on = {"num_heads=2 seq_len=40 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on =
        "num_heads=2 seq_len=40 head_dim=16 sinks=1,-1 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow& row) {
            const KeyRanges visible = visible_keys(row);
            const double sink = row.problem.sink(row.head);
            return !visible.empty() && visible.first() >= kTile
                       ? sink + std::log(2.0)
                       : sink;
          };
          return variant;
        },
};

}  // namespace attnguard
