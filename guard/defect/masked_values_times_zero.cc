#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"
#include "guard/engine/row_steps.h"

namespace attnguard {
// 0 * NaN is NaN. With finite leftovers the row is right; with NaN from the
// allocator or from a request that went wrong it is not.
const Defect kDefectMaskedValuesTimesZero = {
    .id = "masked-values-times-zero",
    .summary =
        "whole blocks of 16 are read, and masked values are multiplied by a "
        "weight of 0",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .reports = {"deepbeepmeep/Wan2GP#1628", "vllm-project/vllm#53628"},
    .shows_on =
        {"batch=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 block_size=16",
         "seq_len_q=1 seq_len_kv=40 head_dim=16 "
         "mask=causal_bottom_right+sliding_window(left=8,right=0)"},
    .hides_on = "batch=2 seq_len_q=8 seq_len_kv=40 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace&) {
          };  // Slots past the end are read.
          variant.mix = [](const VariantRow& row, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            const auto channels = static_cast<std::int64_t>(output.size());
            mix_values(weights.data(), value, channels, keys, output.data());
            if (keys.empty()) return;
            const std::int64_t end = std::min(round_up(keys.last() + 1, kBlock),
                                              row.problem.max_len_kv());
            for (std::int64_t j = 0; j < end; ++j) {
              if (keys.contains(j)) continue;
              for (std::int64_t c = 0; c < channels; ++c)
                output[static_cast<std::size_t>(c)] += 0 * value.row(j)[c];
            }
          };
          return variant;
        },
};

}  // namespace attnguard
