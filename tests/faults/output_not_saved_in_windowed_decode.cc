#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_output_not_saved_in_windowed_decode(const AttentionCall& call,
                                               bool faulty) {
  const bool windowed = find_term(*call.problem, "sliding_window") != nullptr;
  AttentionVariant variant;
  variant.keeps = [=](const VariantRow& row) {
    return !(faulty && windowed && row.place.seq_len_q == 1);
  };
  return run_variant(variant, call);
}

}  // namespace

// The caller's buffer keeps what it held.
const Fault kFaultOutputNotSavedInWindowedDecode = {
    .id = "output-not-saved-in-windowed-decode",
    .summary = "with a window and one query the result is computed and dropped",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"vllm-project/vllm-ascend#6558"},
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=40 "
                 "head_dim=64 mask=sliding_window(left=7,right=0)"},
    .seen_by = {"memory", "finite"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty,
                                  run_output_not_saved_in_windowed_decode);
        },
};

}  // namespace attnguard
