#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The mask is read once for each chunk of queries. All rows but the first lose
// keys.
const Defect kDefectMaskRowOfChunk = {
    .id = "mask-row-of-chunk",
    .summary = "16 rows share the mask of the first of them",
    .cls = DefectClass::kMaskMisread,
    .reports = {"google-research/tabfm#40", "openvinotoolkit/openvino#30758"},
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            place.q_index = round_down(place.q_index, kTile);
          };
          return variant;
        },
};

}  // namespace attnguard
