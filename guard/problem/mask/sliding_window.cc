#include <array>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 2> kSlidingWindowParameters = {{
    {"left", -1, true, 0, "older keys in reach, self not counted; -1: all"},
    {"right", -1, true, 0, "later keys in reach, self not counted; -1: all"},
}};

void append_window(const MaskValues& values, std::int64_t center,
                   std::int64_t seq_len_kv, KeyRanges& out) {
  const std::int64_t left = values[0];
  const std::int64_t right = values[1];
  append_clipped(left < 0 ? 0 : center - left,
                 right < 0 ? seq_len_kv : center + right + 1, seq_len_kv, out);
}

}  // namespace

// Counts of keys, inclusive, as FlashAttention, Transformer Engine and
// FlashInfer count them: left = W - 1 where an engine says "W keys with self".
const MaskKind kMaskSlidingWindow = {
    .name = "sliding_window",
    .summary =
        "left keys before and right keys after the query's own, last query "
        "aligned with last key: FlashAttention, FlashInfer",
    .parameters = kSlidingWindowParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          append_window(values, row.bottom_right(), row.seq_len_kv, out);
        },
    .exclusive_group = "window",
};

const MaskKind kMaskSlidingWindowTopLeft = {
    .name = "sliding_window_top_left",
    .summary = "the same window, first query aligned with first key",
    .parameters = kSlidingWindowParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          append_window(values, row.q_index, row.seq_len_kv, out);
        },
    .exclusive_group = "window",
};

}  // namespace attnguard
