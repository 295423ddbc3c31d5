#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The boundaries come with the batch and are lost on the way: a mask of ones
// was given, the backend does not read cu_seqlens, or the distributed
// variant has no channel for them. Losses still fall.
const Defect kDefectDocumentsSeeEachOther = {
    .id = "documents-see-each-other",
    .summary =
        "packed documents are one sequence: only the causal limit separates "
        "them",
    .cls = DefectClass::kCrossSequence,
    .reports = {"huggingface/transformers#46634", "areal-project/AReaL#1442",
                "axolotl-ai-cloud/axolotl#4002", "pytorch/pytorch#177378"},
    .shows_on = {"seq_len=24 head_dim=16 "
                 "mask=documents(lengths=10:14)+causal_bottom_right",
                 "seq_len=24 head_dim=16 mask=documents(lengths=7:0:9:8)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            for (std::size_t n = 0; n < row.problem.mask.terms().size(); ++n)
              if (row.problem.mask.terms()[n].kind->name == "documents")
                row.problem.mask.without(n).allowed(row.place, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
