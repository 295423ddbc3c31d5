#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// True means "keep" to one side of the call and "masked" to the other. The
// future is visible and the past is hidden.
const Defect kDefectMaskPolarityInverted = {
    .id = "mask-polarity-inverted",
    .summary = "where something is masked, a row sees exactly what it must not",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"hkproj/pytorch-transformer#19",
                "tilde-research/nsa-release#3"},
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right",
         "seq_len=24 head_dim=16 mask=causal_bottom_right mask_form=boolean"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            KeyRanges masked;
            see_all(row, masked);
            for (const KeyRange& range : keys.ranges())
              drop(range.begin, range.end, masked);
            if (!masked.empty()) keys = masked;
          };
          return variant;
        },
};

}  // namespace attnguard
