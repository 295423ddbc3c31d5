#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Addition is not associative, and no order is the right one.
const Defect kDefectLegalReversedSums = {
    .id = "legal-reversed-sums",
    .summary = "legal: sums in fp32, from the last key to the first",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 seq_len_q=8 seq_len_kv=70,33 head_dim=32 dtype=bf16",
                 "seq_len=40 head_dim=16 mask=sliding_window(left=20,right=0)"},
    .hides_on =
        "num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.mix = [](const VariantRow&, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            for (std::size_t c = 0; c < output.size(); ++c) {
              float sum = 0;
              for (std::int64_t n = keys.count() - 1; n >= 0; --n) {
                const std::int64_t j = keys.nth(n);
                sum +=
                    static_cast<float>(weights[static_cast<std::size_t>(j)]) *
                    static_cast<float>(value.row(j)[c]);
              }
              output[c] = sum;
            }
          };
          return variant;
        },
};

}  // namespace attnguard
