#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

int terms_that_mask(const VariantRow& row, std::int64_t kv_index) {
  int terms = 0;
  KeyRanges allowed;
  for (const MaskTerm& term : row.problem.mask.terms()) {
    allowed.clear();
    term.kind->allowed(term.values, row.place, allowed);
    terms += !allowed.contains(kv_index);
  }
  return terms;
}

}  // namespace

// A row without allowed keys attends to the padding, or is NaN where
// everything is masked twice. Rows with a key are right.
const Defect kDefectTwiceMaskedIsInfinite = {
    .id = "twice-masked-is-infinite",
    .summary =
        "two additive masks of the lowest number sum to minus infinity: an "
        "empty row is the mean of what only one masks",
    .cls = DefectClass::kNanInf,
    .reports = {"huggingface/transformers#27114"},
    .shows_on = {"batch=2 seq_len=24 head_dim=16 "
                 "mask=left_padding(pad=3:0)+causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (!keys.empty()) return;
            for (std::int64_t j = 0; j < row.place.seq_len_kv; ++j)
              if (terms_that_mask(row, j) == 1) keys.append(j, j + 1);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            if (!visible_keys(row).empty()) return;
            for_each_key(keys, scores, [](std::int64_t, double& s) { s = 0; });
          };
          variant.output = [](const VariantRow& row, std::span<double> output) {
            if (row.place.seq_len_kv == 0 || !visible_keys(row).empty()) return;
            for (std::int64_t j = 0; j < row.place.seq_len_kv; ++j)
              if (terms_that_mask(row, j) == 1) return;
            std::fill(output.begin(), output.end(), std::nan(""));
          };
          return variant;
        },
};

}  // namespace attnguard
