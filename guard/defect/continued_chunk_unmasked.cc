#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kChunk = 64;

}  // namespace

// A chunk that continues a cache reads its mask at the wrong offset, or its
// mask has the wrong width and is dropped. The chunk's last row is right by
// chance: tests that read only the last row pass.
const Defect kDefectContinuedChunkUnmasked = {
    .id = "continued-chunk-unmasked",
    .summary =
        "with 64 cached keys or more, the new rows see each other both ways",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"tenstorrent/tt-metal#48899", "lablup/mlxcel#891"},
    .shows_on =
        {"seq_len_q=8 seq_len_kv=80 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=8 seq_len_kv=40 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t cached =
                row.place.seq_len_kv - row.place.seq_len_q;
            if (cached >= kChunk) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
