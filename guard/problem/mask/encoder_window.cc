#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kEncoderWindowParameters = {{
    {"width", 1, true, 0, "one more than the keys in reach on each side"},
}};

}  // namespace

const MaskKind kMaskEncoderWindow = {
    .name = "encoder_window",
    .summary =
        "keys at a distance < width on either side: vLLM encoder windows",
    .parameters = kEncoderWindowParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t own = row.bottom_right();
          const std::int64_t reach = values[0] - 1;
          append_clipped(own - reach, own + reach + 1, row.seq_len_kv, out);
        },
    .exclusive_group = "window",
};

}  // namespace attnguard
