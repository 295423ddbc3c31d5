#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The latent part and the positional part of a row change places.
const Defect kDefectMlaValueFromLastChannels = {
    .id = "mla-value-from-last-channels",
    .summary =
        "where the value lies in the key, its last channels are taken instead "
        "of its first",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on = {"num_heads=4 num_kv_heads=1 seq_len=24 head_dim_qk=40 "
                 "head_dim_v=16 value_in_key=true mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 num_kv_heads=1 seq_len=24 head_dim_qk=40 head_dim_v=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            const std::int64_t offset =
                right_offset(call, role, slot, position);
            const Problem& problem = *call.problem;
            if (!problem.value_in_key || role != TensorRole::kValue)
              return offset;
            return offset + (problem.head_dim_qk - problem.head_dim_v) *
                                call.value.strides[3];
          };
          return variant;
        },
};

}  // namespace attnguard
