#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kBudget = 64;

}  // namespace

// Below the budget of a sparse selection the selection is skipped, and with it
// the only place where a mask was made. The leak is there at short lengths
// only.
const Defect kDefectShortSequenceUnmasked = {
    .id = "short-sequence-unmasked",
    .summary = "no mask up to 64 keys",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"osaurus-ai/vmlx-swift#429"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=80 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.place.seq_len_kv <= kBudget) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
