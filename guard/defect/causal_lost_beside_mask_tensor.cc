#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

bool is_limit(const MaskTerm& term) {
  return term.kind->exclusive_group == "causal" ||
         term.kind->exclusive_group == "window";
}

}  // namespace

// The limits are built on the branch without a mask; on the other one the
// caller's bits are all there is.
const Defect kDefectCausalLostBesideMaskTensor = {
    .id = "causal-lost-beside-mask-tensor",
    .summary =
        "where a mask is given, only its padding is used: neither causal limit "
        "nor window",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"huggingface/candle#3609"},
    .shows_on =
        {"seq_len=24 head_dim=16 "
         "mask=left_padding_keys(pad=3)+causal_bottom_right mask_form=boolean"},
    .hides_on =
        "seq_len=24 head_dim=16 "
        "mask=left_padding_keys(pad=3)+causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask_form == MaskForm::kImplied) return;
            Mask mask = row.problem.mask;
            for (std::size_t n = mask.terms().size(); n-- > 0;)
              if (is_limit(mask.terms()[n])) mask = mask.without(n);
            mask.allowed(row.place, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
