#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kIndexWrap = 256;

}  // namespace

// The offset into V overflows while that into K does not.
const Defect kDefectValueIndexWrapsAt256 = {
    .id = "value-index-wraps-at-256",
    .summary = "the value of key j is that of key j % 256",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"seq_len_q=8 seq_len_kv=300 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.mix = [](const VariantRow&, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            std::fill(output.begin(), output.end(), 0.0);
            for (const KeyRange& range : keys.ranges())
              for (std::int64_t j = range.begin; j < range.end; ++j)
                for (std::size_t c = 0; c < output.size(); ++c)
                  output[c] += weights[static_cast<std::size_t>(j)] *
                               value.row(j % kIndexWrap)[c];
          };
          return variant;
        },
};

}  // namespace attnguard
