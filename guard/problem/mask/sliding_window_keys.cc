#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kSlidingWindowKeysParameters = {{
    {"keys", 1, true, 0, "keys in reach, the query's own counted"},
}};

}  // namespace

// sliding_window(left=keys-1,right=0) under the name of the engines that count
// the query's own key.
const MaskKind kMaskSlidingWindowKeys = {
    .name = "sliding_window_keys",
    .summary =
        "the query's own key and the keys-1 before it, last query aligned "
        "with last key: Hugging Face, vLLM, llama.cpp",
    .parameters = kSlidingWindowKeysParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t end = row.bottom_right() + 1;
          append_clipped(end - values[0], end, row.seq_len_kv, out);
        },
    .exclusive_group = "window",
};

}  // namespace attnguard
