#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// An arange in the type of the activations. Two neighbours become one
// position, and a row there gains or loses a key.
const Defect kDefectPositionsInBf16 = {
    .id = "positions-in-bf16",
    .summary = "positions are held in bf16: beyond 256 they are rounded",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"seq_len=300 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=80 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            const double rounded =
                quantize(Dtype::kBf16, static_cast<double>(place.q_index));
            place.q_index = std::min(static_cast<std::int64_t>(rounded),
                                     place.seq_len_q - 1);
          };
          return variant;
        },
};

}  // namespace attnguard
