#include <algorithm>
#include <array>

#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kPrefixLmParameters = {{
    {"prefix", 0, true, 0, "number of leading keys that every query sees"},
}};

}  // namespace

const MaskKind kMaskPrefixLm = {
    .name = "prefix_lm",
    .summary =
        "the first `prefix` keys for every query, causal "
        "(last query aligned with last key) after them",
    .parameters = kPrefixLmParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t end = std::max(values[0], row.bottom_right() + 1);
          out.append(0, std::min(end, row.seq_len_kv));
        },
    .exclusive_group = "causal",
};

}  // namespace attnguard
