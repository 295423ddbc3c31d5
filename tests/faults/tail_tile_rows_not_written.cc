#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

constexpr std::int64_t kTile = 16;

Status run_tail_tile_rows_not_written(const AttentionCall& call, bool faulty) {
  AttentionVariant variant;
  variant.keeps = [=](const VariantRow& row) {
    return !faulty ||
           row.place.q_index < round_down(row.place.seq_len_q, kTile);
  };
  return run_variant(variant, call);
}

}  // namespace

const Fault kFaultTailTileRowsNotWritten = {
    .id = "tail-tile-rows-not-written",
    .summary = "the rows of a last tile of fewer than 16 are never written",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"ROCm/aiter#4244"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory", "finite"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_tail_tile_rows_not_written);
        },
};

}  // namespace attnguard
