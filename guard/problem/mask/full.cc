#include "guard/problem/mask/mask_table.h"

namespace attnguard {

const MaskKind kMaskFull = {
    .name = "full",
    .summary =
        "every query sees every key: encoders; cross-attention, where "
        "seq_len_kv is the encoder's",
    .parameters = {},
    .allowed = [](const MaskValues&, const RowPlace& row,
                  KeyRanges& out) { out.append(0, row.seq_len_kv); },
    .exclusive_group = "full",
};

}  // namespace attnguard
