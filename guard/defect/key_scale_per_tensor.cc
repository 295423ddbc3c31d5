#include <algorithm>
#include <cmath>
#include <vector>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
namespace {

double largest_element(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_qk));
  double largest = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
      for (std::int64_t j = 0; j < problem.len_kv(b); ++j) {
        call.key.load_row(b, g, j, 0, problem.head_dim_qk, row.data());
        for (double x : row) largest = std::max(largest, std::abs(x));
      }
  return largest;
}

// A row's own largest element is smaller than the tensor's.
Numerics coarse_tensor_keys(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  numerics.key_error = 4 * 0.5 / kInt8Steps;
  return numerics;
}

}  // namespace

// The scale is the largest element of the batch, tokens that a row must not
// see included. A large later key makes every step coarser and moves earlier
// rows.
const Defect kDefectKeyScalePerTensor = {
    .id = "key-scale-per-tensor",
    .summary = "keys are stored in int8 with one scale for the whole tensor",
    .cls = DefectClass::kFutureLeakGlobalStat,
    .reports = {"NVIDIA/TransformerEngine#3248", "sgl-project/sglang#8134",
                "vllm-project/compressed-tensors#394"},
    .shows_on = {"batch=2 seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.stored = [](const AttentionCall& call, TensorRole role,
                              const KvSlot&, std::span<double> rows) {
            if (role == TensorRole::kKey)
              round_to_step(largest_element(call) / kInt8Steps, rows);
          };
          return variant;
        },
    .numerics = coarse_tensor_keys,
};

}  // namespace attnguard
