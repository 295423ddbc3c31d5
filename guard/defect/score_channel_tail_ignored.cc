#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The dot product runs in whole vectors.
const Defect kDefectScoreChannelTailIgnored = {
    .id = "score-channel-tail-ignored",
    .summary = "channels behind the last whole 16 are left out of the scores",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on =
        {"seq_len=24 head_dim_qk=40 head_dim_v=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=32 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.query = [](const VariantRow&, std::span<double> query) {
            const auto channels = static_cast<std::int64_t>(query.size());
            for (std::int64_t c = round_down(channels, kLanes); c < channels;
                 ++c)
              query[static_cast<std::size_t>(c)] = 0;
          };
          return variant;
        },
};

}  // namespace attnguard
