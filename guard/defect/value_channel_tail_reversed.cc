#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The remainder loop of the store counts down while the accumulators count up.
const Defect kDefectValueChannelTailReversed = {
    .id = "value-channel-tail-reversed",
    .summary =
        "channels of the output behind the last whole 16 are in reverse order",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on =
        {"seq_len=24 head_dim_qk=16 head_dim_v=40 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=32 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.output = [](const VariantRow&, std::span<double> output) {
            const auto channels = static_cast<std::int64_t>(output.size());
            std::reverse(output.begin() + round_down(channels, kLanes),
                         output.end());
          };
          return variant;
        },
};

}  // namespace attnguard
