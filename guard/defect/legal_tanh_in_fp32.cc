#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {
namespace {

constexpr float kUlp = 0x1p-24F;  // Half a unit at 1, a whole one below.

}  // namespace

// Hardware tanh and polynomials are a little off, up or down with the
// argument.
const Defect kDefectLegalTanhInFp32 = {
    .id = "legal-tanh-in-fp32",
    .summary =
        "legal: the soft-cap in fp32, with a tanh that is off by 2 units in "
        "the last place",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=30 head_dim=16 softcap=2 "
                 "mask=causal_bottom_right",
                 "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=60,33 head_dim=32 "
                 "dtype=bf16 softcap=20",
                 "seq_len=40 head_dim=32 softcap=50 "
                 "mask=sliding_window(left=20,right=0)"},
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            Problem problem = row.problem;
            if (problem.softcap) {
              const auto cap = static_cast<float>(*problem.softcap);
              for_each_key(keys, scores, [&](std::int64_t, double& s) {
                const float x = std::tanh(static_cast<float>(s) / cap);
                s = cap * (x + (s > 0 ? -2 : 2) * kUlp * x);
              });
              problem.softcap.reset();
            }
            bend_scores(problem, row.head, row.place, keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
