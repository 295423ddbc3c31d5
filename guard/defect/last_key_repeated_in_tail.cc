#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Loads are clamped to the last key instead of being masked. Every row still
// sums to 1; the last key counts many times.
const Defect kDefectLastKeyRepeatedInTail = {
    .id = "last-key-repeated-in-tail",
    .summary = "the lanes that fill the last tile of 32 repeat the last key",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .shows_on = {"seq_len_q=8 seq_len_kv=40 head_dim=16"},
    .hides_on = "seq_len=64 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            const std::int64_t length = row.place.seq_len_kv;
            const auto copies =
                static_cast<double>(round_up(length, kWideTile) - length + 1);
            if (keys.contains(length - 1)) scores.back() += std::log(copies);
          };
          return variant;
        },
};

}  // namespace attnguard
