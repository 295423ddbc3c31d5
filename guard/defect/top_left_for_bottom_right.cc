#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The other reading of "causal" when there are fewer queries than keys: all
// the cached history is hidden but for the first keys.
const Defect kDefectTopLeftForBottomRight = {
    .id = "top-left-for-bottom-right",
    .summary = "the first query is aligned with the first key",
    .cls = DefectClass::kContractAlignment,
    .reports = {"pytorch/pytorch#103082", "Dao-AILab/flash-attention#402",
                "microsoft/onnxruntime#29020", "openvinotoolkit/openvino#37017",
                "gittensor-ai-lab/sparkinfer#3"},
    .shows_on =
        {"seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right",
         "seq_len_q=8 seq_len_kv=24 head_dim=16 "
         "mask=sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            place.seq_len_q = place.seq_len_kv;
          };
          return variant;
        },
};

}  // namespace attnguard
