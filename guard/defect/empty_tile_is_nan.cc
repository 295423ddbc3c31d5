#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The running maximum starts at minus infinity; a tile without any visible key
// leaves it there, and the difference of two infinities is NaN.
const Defect kDefectEmptyTileIsNan = {
    .id = "empty-tile-is-nan",
    .summary = "a row whose first tile of 16 keys is fully masked is NaN",
    .cls = DefectClass::kNanInf,
    .reports = {"ggml-org/llama.cpp#12776", "huggingface/candle#3625"},
    .shows_on = {"seq_len=40 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=40 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.output = [](const VariantRow& row, std::span<double> output) {
            const KeyRanges visible = visible_keys(row);
            if (!visible.empty() && visible.first() >= kTile)
              std::fill(output.begin(), output.end(), std::nan(""));
          };
          return variant;
        },
};

}  // namespace attnguard
