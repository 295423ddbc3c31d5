#include <algorithm>

#include "guard/problem/mask/mask_table.h"

namespace attnguard {

const MaskKind kMaskCausalBottomRight = {
    .name = "causal_bottom_right",
    .summary =
        "key <= query, last query aligned with last key: "
        "FlashAttention >= 2.1, FlashInfer, vLLM, llama.cpp",
    .parameters = {},
    .allowed =
        [](const MaskValues&, const RowPlace& row, KeyRanges& out) {
          out.append(0, std::min(row.bottom_right() + 1, row.seq_len_kv));
        },
    .exclusive_group = "causal",
};

}  // namespace attnguard
