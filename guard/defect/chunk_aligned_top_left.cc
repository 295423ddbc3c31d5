#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The causal flag of a library that anchors top-left serves for the first
// chunk, where it is right, and for those that continue it.
const Defect kDefectChunkAlignedTopLeft = {
    .id = "chunk-aligned-top-left",
    .summary =
        "several queries behind a cache are aligned with the first keys, a "
        "single one with the last",
    .cls = DefectClass::kPrefillNeDecode,
    .reports = {"pytorch/executorch#21749"},
    .shows_on =
        {"seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.place.seq_len_q < 2) return;
            RowPlace place = row.place;
            place.seq_len_q = place.seq_len_kv;
            row.problem.mask.allowed(place, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
