#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Left padding moves every token; the boundaries between chunks stay where
// they were.
const Defect kDefectChunksFromPaddedStart = {
    .id = "chunks-from-padded-start",
    .summary = "chunks are counted from key 0, though padding comes first",
    .cls = DefectClass::kMaskMisread,
    .reports = {"huggingface/transformers#40324"},
    .shows_on =
        {"seq_len=24 head_dim=16 "
         "mask=chunked_local_from_padding(chunk=8,pad=3)+causal_bottom_right"},
    .hides_on =
        "seq_len=24 head_dim=16 "
        "mask=chunked_local_from_padding(chunk=8,pad=0)+causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* chunks =
                find_term(row.problem, "chunked_local_from_padding");
            if (chunks == nullptr || row.place.bottom_right() < 0) return;
            const std::int64_t chunk = chunks->values[0];
            const std::int64_t begin =
                round_down(row.place.bottom_right(), chunk);
            const bool empty = keys.empty();
            see_all(row, keys);
            if (empty) keys.clear();
            see_only(begin, begin + chunk, keys);
            for (const MaskTerm& term : row.problem.mask.terms()) {
              if (&term == chunks) continue;
              KeyRanges other;
              term.kind->allowed(term.values, row.place, other);
              const KeyRanges own = keys;
              intersect(own, other, keys);
            }
          };
          return variant;
        },
};

}  // namespace attnguard
