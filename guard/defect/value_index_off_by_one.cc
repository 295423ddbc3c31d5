#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// K and V are written by separate copies, and one is a slot ahead. Weights and
// row sums are right.
const Defect kDefectValueIndexOffByOne = {
    .id = "value-index-off-by-one",
    .summary = "the value of key j is that of key j + 1, but for the last",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"seq_len_q=8 seq_len_kv=24 head_dim=16",
                 "seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len_q=8 seq_len_kv=1 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.mix = [](const VariantRow& row, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            const std::int64_t last = row.place.seq_len_kv - 1;
            std::fill(output.begin(), output.end(), 0.0);
            for (const KeyRange& range : keys.ranges())
              for (std::int64_t j = range.begin; j < range.end; ++j)
                for (std::size_t c = 0; c < output.size(); ++c)
                  output[c] += weights[static_cast<std::size_t>(j)] *
                               value.row(std::min(j + 1, last))[c];
          };
          return variant;
        },
};

}  // namespace attnguard
