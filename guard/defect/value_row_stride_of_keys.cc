#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// head_dim_qk and head_dim_v are the same in most models, so one of them
// serves for both strides.
const Defect kDefectValueRowStrideOfKeys = {
    .id = "value-row-stride-of-keys",
    .summary = "value rows are addressed with the row length of keys",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on =
        {"seq_len=24 head_dim_qk=16 head_dim_v=24 mask=causal_bottom_right",
         "seq_len=24 head_dim_qk=24 head_dim_v=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.mix = [](const VariantRow& row, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            const std::int64_t channels = row.problem.head_dim_v;
            std::fill(output.begin(), output.end(), 0.0);
            for (const KeyRange& range : keys.ranges())
              for (std::int64_t j = range.begin; j < range.end; ++j)
                for (std::int64_t c = 0; c < channels; ++c) {
                  const std::int64_t at = j * row.problem.head_dim_qk + c;
                  const std::int64_t from =
                      at / channels % row.place.seq_len_kv;
                  output[static_cast<std::size_t>(c)] +=
                      weights[static_cast<std::size_t>(j)] *
                      value.row(from)[at % channels];
                }
          };
          return variant;
        },
};

}  // namespace attnguard
