#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kLate = 2048;

}  // namespace

// A path for long contexts that short tests never enter.
const Defect kDefectLatePositionsUnmasked = {
    .id = "late-positions-unmasked",
    .summary = "rows at position 2048 and later see every key",
    .cls = DefectClass::kFutureLeakDirect,
    .shows_on =
        {"seq_len_q=64 seq_len_kv=2080 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.place.bottom_right() >= kLate) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
