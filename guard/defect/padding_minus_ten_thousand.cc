#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Enough for scores of a few nats. What a slot's last user left, or what an
// allocator returns, may score more than ten thousand, and then wins.
const Defect kDefectPaddingMinusTenThousand = {
    .id = "padding-minus-ten-thousand",
    .summary =
        "slots past an entry's length are read, with 10000 taken off their "
        "scores",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .shows_on = {"batch=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16"},
    .hides_on = "batch=2 seq_len_q=8 seq_len_kv=40 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace&) {
          };  // Slots past the end are read.
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (!keys.empty() && !row.problem.packed)
              keys.append(row.place.seq_len_kv, row.problem.max_len_kv());
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            for_each_key(keys, scores, [&](std::int64_t j, double& s) {
              if (j >= row.place.seq_len_kv) s -= 10000;
            });
          };
          return variant;
        },
};

}  // namespace attnguard
