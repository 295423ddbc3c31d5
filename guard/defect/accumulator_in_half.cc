#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Large values overflow it, and at long contexts the sum stops growing.
const Defect kDefectAccumulatorInHalf = {
    .id = "accumulator-in-half",
    .summary = "the output is summed up in fp16",
    .cls = DefectClass::kNanInf,
    .reports = {"ggml-org/llama.cpp#17746"},
    .shows_on = {"seq_len_q=8 seq_len_kv=80 head_dim=16"},
    .hides_on =
        "seq_len=24 head_dim=16 dtype=fp16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.mix = [](const VariantRow&, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            std::fill(output.begin(), output.end(), 0.0);
            for (const KeyRange& range : keys.ranges())
              for (std::int64_t j = range.begin; j < range.end; ++j)
                for (std::size_t c = 0; c < output.size(); ++c)
                  output[c] = quantize(
                      Dtype::kFp16,
                      output[c] + weights[static_cast<std::size_t>(j)] *
                                      value.row(j)[c]);
          };
          return variant;
        },
};

}  // namespace attnguard
