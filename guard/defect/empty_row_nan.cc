#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// exp(-inf - -inf), or 0 / 0. In the next layer it spreads to every row that
// sees this one.
const Defect kDefectEmptyRowNan = {
    .id = "empty-row-nan",
    .summary = "a row without allowed keys is NaN",
    .cls = DefectClass::kNanInf,
    .reports = {"pytorch/pytorch#103749", "ml-explore/mlx#2608"},
    .shows_on =
        {"seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right "
        "empty_row=nan",
    .make =
        [] {
          AttentionVariant variant;
          variant.output = [](const VariantRow& row, std::span<double> output) {
            if (visible_keys(row).empty())
              std::fill(output.begin(), output.end(), std::nan(""));
          };
          return variant;
        },
};

}  // namespace attnguard
