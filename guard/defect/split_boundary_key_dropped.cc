#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kParts = 4;
constexpr std::int64_t kFewest = 16;

}  // namespace

// Split-KV: the parts' bounds are computed twice, once inclusive and once
// exclusive.
const Defect kDefectSplitBoundaryKeyDropped = {
    .id = "split-boundary-key-dropped",
    .summary =
        "from 16 keys on they are split in four parts, and three lose their "
        "first key",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len_q=4 seq_len_kv=40 head_dim=16"},
    .hides_on = "seq_len=15 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t part =
                (row.place.seq_len_kv + kParts - 1) / kParts;
            if (row.place.seq_len_kv < kFewest) return;
            for (std::int64_t n = 1; n < kParts; ++n)
              drop(n * part, n * part + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
