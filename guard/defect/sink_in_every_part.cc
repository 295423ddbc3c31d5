#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Each split starts its sum from the sink, as the whole row would. The
// denominator has it once for each part.
const Defect kDefectSinkInEveryPart = {
    .id = "sink-in-every-part",
    .summary =
        "parts of 16 keys each count the sink, and the merge adds them up",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"num_heads=2 seq_len=40 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right",
                 "num_heads=2 seq_len_q=1 seq_len_kv=40 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 seq_len=16 head_dim=16 sinks=1,-1 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow& row) {
            std::int64_t parts = 0;
            for_each_tile(visible_keys(row), kTile,
                          [&](const KeyRanges&) { ++parts; });
            const double sink = row.problem.sink(row.head);
            return parts > 1 ? sink + std::log(static_cast<double>(parts))
                             : sink;
          };
          return variant;
        },
};

}  // namespace attnguard
