#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
namespace {

Numerics tokens_in_int8(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  numerics.key_error = numerics.value_error = 0.5 / kInt8Steps;
  return numerics;
}

}  // namespace

// Quantised caches lose precision and nothing else: no token changes another
// one's copy.
const Defect kDefectLegalTokensInInt8 = {
    .id = "legal-tokens-in-int8",
    .summary =
        "legal: each token's key and value are int8 with a scale of their own",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on = {"batch=2 seq_len_q=8 seq_len_kv=70,33 head_dim=32 dtype=bf16",
                 "num_heads=2 seq_len_q=8 seq_len_kv=40 head_dim=16 "
                 "mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.stored = [](const AttentionCall& call, TensorRole role,
                              const KvSlot&, std::span<double> rows) {
            const auto channels = static_cast<std::size_t>(
                role == TensorRole::kKey ? call.problem->head_dim_qk
                                         : call.problem->head_dim_v);
            for (std::size_t at = 0; at < rows.size(); at += channels) {
              const std::span<double> row = rows.subspan(at, channels);
              double largest = 0;
              for (double x : row) largest = std::max(largest, std::abs(x));
              round_to_step(largest / kInt8Steps, row);
            }
          };
          return variant;
        },
    .numerics = tokens_in_int8,
};

}  // namespace attnguard
