#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The key loop ends where a causal mask would end it, even when the mask
// allows more: a bidirectional prefix or a tree loses the tiles behind it.
const Defect kDefectKeyLoopStopsAtCausalTile = {
    .id = "key-loop-stops-at-causal-tile",
    .summary =
        "keys behind the tile of 16 on the diagonal are never read, allowed or "
        "not",
    .cls = DefectClass::kPastDropped,
    .reports = {"sgl-project/sglang#39593", "vllm-project/vllm#47217"},
    .shows_on = {"seq_len=64 head_dim=16 mask=prefix_lm(prefix=40)",
                 "seq_len=40 head_dim=16"},
    .hides_on = "seq_len=64 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t own = row.place.bottom_right();
            see_only(0, round_up(own + 1, kTile), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
