#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kPositionWrap = 256;

}  // namespace

// The position is held in eight bits; the same happens at 65536 with sixteen.
const Defect kDefectPositionWrapsAt256 = {
    .id = "position-wraps-at-256",
    .summary =
        "a row at position 256 or later is masked as if it were 256 earlier",
    .cls = DefectClass::kIndexOverflowOob,
    .reports = {"pytorch/pytorch#186075"},
    .shows_on = {"seq_len=300 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            place.q_index %= kPositionWrap;
          };
          return variant;
        },
};

}  // namespace attnguard
