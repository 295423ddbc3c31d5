#include <vector>

#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_dequantises_value_in_place(const AttentionCall& call, bool faulty) {
  if (!faulty) return run_variant({}, call);
  const Problem& problem = *call.problem;
  const TensorView value = writable(call.value);
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_v));
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
      for (std::int64_t j = 0; j < problem.len_kv(b); ++j) {
        value.load_row(b, g, j, 0, problem.head_dim_v, row.data());
        for (double& x : row) x *= 2;
        value.store_row(b, g, j, 0, problem.head_dim_v, row.data());
      }
  AttentionVariant variant;
  variant.output = [](const VariantRow&, std::span<double> output) {
    for (double& x : output) x /= 2;
  };
  return run_variant(variant, call);
}

}  // namespace

// The output is right.
const Fault kFaultDequantisesValueInPlace = {
    .id = "dequantises-value-in-place",
    .summary = "scales the values in the caller's memory and not back",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_dequantises_value_in_place);
        },
};

}  // namespace attnguard
