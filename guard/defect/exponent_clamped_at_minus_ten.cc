#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr double kLeast = -10;

}  // namespace

// The range of a polynomial for exp is enforced by a clamp: keys that should
// count for nothing count for 5e-5 each.
const Defect kDefectExponentClampedAtMinusTen = {
    .id = "exponent-clamped-at-minus-ten",
    .summary = "exponents below -10 are raised to -10",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double sink = row.problem.sink(row.head);
            const double reference =
                std::max(largest_score(keys, scores), sink);
            double sum = std::exp(sink - reference);
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              sum += s = std::exp(std::max(s - reference, kLeast));
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
