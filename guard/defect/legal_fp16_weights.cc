#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The matrix unit takes its operands in a small type and adds up in fp32. Rows
// sum to 1 within that type's rounding.
const Defect kDefectLegalFp16Weights = {
    .id = "legal-fp16-weights",
    .summary = "legal: weights are rounded to fp16 before the product",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 seq_len_q=8 seq_len_kv=70,33 head_dim=32 dtype=bf16",
                 "seq_len=40 head_dim=16 mask=sliding_window(left=20,right=0)"},
    .hides_on =
        "num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
        "mask=causal_bottom_right",
    .make = variant_with_weights_in<Dtype::kFp16>,
    .numerics = numerics_of_weights_in<Dtype::kFp16>,
};

}  // namespace attnguard
