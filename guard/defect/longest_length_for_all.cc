#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The padding mask is dropped on one path, or replaced by a dummy. The rows
// behind an entry's length hold zeros or what an earlier call left there.
const Defect kDefectLongestLengthForAll = {
    .id = "longest-length-for-all",
    .summary = "every entry has the length of the longest: padding is attended",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .reports = {"ggml-org/whisper.cpp#3941", "AnswerDotAI/ModernBERT#40",
                "deepspeedai/DeepSpeed#1913", "facebookresearch/xformers#1122",
                "huggingface/transformers#45940"},
    .shows_on = {"batch=3 seq_len_q=8 seq_len_kv=24,15,21 head_dim=16",
                 "batch=3 seq_len_q=8 seq_len_kv=24,15,21 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on = "batch=2 seq_len_q=8 seq_len_kv=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow& row, RowPlace& place) {
            place.seq_len_kv = row.problem.max_len_kv();
          };
          return variant;
        },
};

}  // namespace attnguard
