#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kSlidingWindowTwoSidedParameters = {{
    {"width", 0, true, 0, "keys in reach on each side, self not counted"},
}};

}  // namespace

const MaskKind kMaskSlidingWindowTwoSided = {
    .name = "sliding_window_two_sided",
    .summary =
        "keys at a distance <= width on either side of the query: Hugging Face "
        "bidirectional sliding window",
    .parameters = kSlidingWindowTwoSidedParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t own = row.bottom_right();
          const std::int64_t reach = values[0];
          append_clipped(own - reach, own + reach + 1, row.seq_len_kv, out);
        },
    .exclusive_group = "window",
};

}  // namespace attnguard
