#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// [batch, 1, q, 1] instead of [batch, 1, 1, kv]. A finite masked score makes
// the padded rows look ordinary.
const Defect kDefectPaddingMaskOnQueries = {
    .id = "padding-mask-on-queries",
    .summary =
        "the padding mask is laid along the queries: padded rows see nothing, "
        "padded keys are seen by all",
    .cls = DefectClass::kMaskMisread,
    .reports = {"hyunwoongko/transformer#40"},
    .shows_on = {"seq_len=24 head_dim=16 mask=left_padding_keys(pad=3)",
                 "batch=2 seq_len=24 head_dim=16 "
                 "mask=left_padding_keys(pad=3:5)+causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* padding =
                find_term(row.problem, "left_padding_keys");
            if (padding == nullptr) return;
            const auto& pads = padding->values.list(0);
            const std::int64_t pad =
                pads[pads.size() == 1
                         ? 0
                         : static_cast<std::size_t>(row.place.batch)];
            if (row.place.q_index < pad)
              keys.clear();
            else
              see(row, 0, std::min(pad, row.place.bottom_right() + 1), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
