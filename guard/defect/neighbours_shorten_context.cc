#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kShortened = 48;

}  // namespace

// The cells of all sequences are cut to the last N in the order of storage. It
// is the presence of the neighbours that costs keys, not their values:
// changing what they hold shows nothing.
const Defect kDefectNeighboursShortenContext = {
    .id = "neighbours-shorten-context",
    .summary =
        "with more than one batch entry, each sees its newest 48 keys at most",
    .cls = DefectClass::kPastDropped,
    .reports = {"ikawrakow/ik_llama.cpp#2186"},
    .shows_on = {"batch=2 seq_len_q=8 seq_len_kv=64 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=8 seq_len_kv=64 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.batch > 1)
              see_only(row.place.seq_len_kv - kShortened, row.place.seq_len_kv,
                       keys);
          };
          return variant;
        },
};

}  // namespace attnguard
