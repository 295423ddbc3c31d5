#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The kernel takes the newest keys for those of the queries and reads them
// from another place: right for a single query, and rows sum to 1 always.
const Defect kDefectKeysCountedTwice = {
    .id = "keys-counted-twice",
    .summary =
        "with q queries in cross-attention the last q - 1 keys are skipped, "
        "the first q - 1 count twice",
    .cls = DefectClass::kPastDropped,
    .reports = {"vllm-project/vllm#38321"},
    .shows_on = {"seq_len_q=8 seq_len_kv=24 head_dim=16"},
    .hides_on = "seq_len_q=1 seq_len_kv=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t skipped =
                std::min(row.place.seq_len_q, row.place.seq_len_kv) - 1;
            const std::int64_t length = row.place.seq_len_kv;
            if (row.problem.mask.has("full"))
              drop(length - skipped, length, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges&,
                              std::span<double> scores) {
            const std::int64_t skipped =
                std::min(row.place.seq_len_q, row.place.seq_len_kv) - 1;
            if (!row.problem.mask.has("full")) return;
            for (std::int64_t j = 0; j < skipped; ++j)
              scores[static_cast<std::size_t>(j)] += std::log(2.0);
          };
          return variant;
        },
};

}  // namespace attnguard
