#include <cmath>

#include "guard/defect/edit.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct MergeReadsPreviousLogSumState {
  bool faulty;
  std::vector<double> log_sums;  // by row_number
};

Status run_merge_reads_previous_log_sum(const AttentionCall& call,
                                        MergeReadsPreviousLogSumState& state) {
  constexpr double kNone = -HUGE_VAL;
  if (state.log_sums.size() != num_row_numbers(*call.problem))
    state.log_sums.assign(num_row_numbers(*call.problem), kNone);
  AttentionVariant variant;
  variant.row_softmax = [&](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
    double& stored = state.log_sums[static_cast<std::size_t>(row_number(row))];
    KeyRanges first = keys, second = keys;
    const std::int64_t middle = (row.place.seq_len_kv + 1) / 2;
    drop(middle, row.place.seq_len_kv, first);
    drop(0, middle, second);
    const double own = log_sum_exp(first, scores);
    if (!state.faulty || stored == kNone) stored = own;
    if (first.empty() || second.empty()) {
      stored = own;
      softmax_row(keys, scores.data());
      return;
    }
    const double other = log_sum_exp(second, scores);
    const double weight = 1 / (1 + std::exp(other - stored));
    softmax_row(first, scores.data());
    softmax_row(second, scores.data());
    for_each_key(first, scores, [&](std::int64_t, double& p) { p *= weight; });
    for_each_key(second, scores,
                 [&](std::int64_t, double& p) { p *= 1 - weight; });
    stored = own;
  };
  return run_variant(variant, call);
}

}  // namespace

// Split-KV: the part did not store it, since nobody had asked for it. Rows
// still sum to 1.
const Fault kFaultMergeReadsPreviousLogSum = {
    .id = "merge-reads-previous-log-sum",
    .summary =
        "the first half of the keys is merged with the log-sum-exp that the "
        "previous call stored",
    .cls = DefectClass::kStaleOrUninit,
    .reports = {"flashinfer-ai/flashinfer#50", "NVIDIA/TransformerEngine#3331"},
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"visibility", "repeatable"},
    .make =
        [](bool faulty) {
          return stateful_engine(
              MergeReadsPreviousLogSumState{.faulty = faulty},
              run_merge_reads_previous_log_sum);
        },
};

}  // namespace attnguard
