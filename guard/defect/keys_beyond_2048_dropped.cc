#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kMostKeys = 2048;

}  // namespace

// A buffer of fixed size for scores or for masks; what does not fit is left
// out without a word.
const Defect kDefectKeysBeyond2048Dropped = {
    .id = "keys-beyond-2048-dropped",
    .summary = "keys at position 2048 and later have no weight",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len_q=4 seq_len_kv=2080 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            see_only(0, kMostKeys, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
