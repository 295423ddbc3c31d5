#include <algorithm>

#include "guard/problem/mask/mask_table.h"

namespace attnguard {

const MaskKind kMaskCausalTopLeft = {
    .name = "causal_top_left",
    .summary =
        "key <= query, first query aligned with first key: PyTorch "
        "is_causal, JAX, ONNX Attention without past",
    .parameters = {},
    .allowed =
        [](const MaskValues&, const RowPlace& row, KeyRanges& out) {
          out.append(0, std::min(row.q_index + 1, row.seq_len_kv));
        },
    .exclusive_group = "causal",
};

}  // namespace attnguard
