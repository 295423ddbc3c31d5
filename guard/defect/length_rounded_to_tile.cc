#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Whole tiles are read and the boundary inside the last one is not masked.
const Defect kDefectLengthRoundedToTile = {
    .id = "length-rounded-to-tile",
    .summary =
        "lengths are rounded up to a tile of 16, where the tensor has room",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .reports = {"tenstorrent/tt-metal#41215", "ggml-org/whisper.cpp#3941",
                "hw-native-sys/simpler#72"},
    .shows_on =
        {"batch=2 seq_len_q=8 seq_len_kv=40,21 head_dim=16",
         "batch=2 seq_len_q=8 seq_len_kv=21,40 head_dim=16 packed=true",
         "batch=2 seq_len_q=8 seq_len_kv=40,21 head_dim=16 block_size=16"},
    .hides_on = "batch=2 seq_len_q=8 seq_len_kv=40,32 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            place.seq_len_kv = round_up(place.seq_len_kv, kTile);
          };
          return variant;
        },
};

}  // namespace attnguard
