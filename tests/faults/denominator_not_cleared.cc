#include <cmath>

#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct DenominatorNotClearedState {
  bool faulty;
  std::vector<double> sums;  // by row_number
};

Status run_denominator_not_cleared(const AttentionCall& call,
                                   DenominatorNotClearedState& state) {
  if (state.sums.size() != num_row_numbers(*call.problem))
    state.sums.assign(num_row_numbers(*call.problem), 0.0);
  AttentionVariant variant;
  variant.row_softmax = [&](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
    double& left = state.sums[static_cast<std::size_t>(row_number(row))];
    const double own =
        std::exp(log_sum_exp(keys, scores) - largest_score(keys, scores));
    softmax_row(keys, scores.data());
    const double begin = state.faulty ? left : 0;
    for_each_key(keys, scores,
                 [&](std::int64_t, double& p) { p *= own / (own + begin); });
    left = own;
  };
  return run_variant(variant, call);
}

}  // namespace

const Fault kFaultDenominatorNotCleared = {
    .id = "denominator-not-cleared",
    .summary = "the sum of the softmax begins with what the previous call left",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"row-sum"},
    .make =
        [](bool faulty) {
          return stateful_engine(DenominatorNotClearedState{.faulty = faulty},
                                 run_denominator_not_cleared);
        },
};

}  // namespace attnguard
