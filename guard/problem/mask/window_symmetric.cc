#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kWindowSymmetricParameters = {{
    {"width", 0, true, 0,
     "the whole window; half of it, rounded down, lies on each side"},
}};

}  // namespace

const MaskKind kMaskWindowSymmetric = {
    .name = "window_symmetric",
    .summary =
        "keys at a distance <= width / 2 (rounded down) on either side: "
        "llama.cpp symmetric windows",
    .parameters = kWindowSymmetricParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t own = row.bottom_right();
          const std::int64_t reach = values[0] / 2;
          append_clipped(own - reach, own + reach + 1, row.seq_len_kv, out);
        },
    .exclusive_group = "window",
};

}  // namespace attnguard
