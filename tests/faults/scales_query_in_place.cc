#include <vector>

#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

Status run_scales_query_in_place(const AttentionCall& call, bool faulty) {
  if (!faulty) return run_variant({}, call);
  const Problem& problem = *call.problem;
  const TensorView query = writable(call.query);
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_qk));
  for_each_output_row(
      problem, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
        query.load_row(b, h, i, 0, problem.head_dim_qk, row.data());
        for (double& x : row) x *= problem.scale();
        query.store_row(b, h, i, 0, problem.head_dim_qk, row.data());
      });
  AttentionVariant variant;
  variant.scale = [](const Problem&) { return 1.0; };
  return run_variant(variant, call);
}

}  // namespace

// The output is right: the scale is a power of two.
const Fault kFaultScalesQueryInPlace = {
    .id = "scales-query-in-place",
    .summary = "multiplies the query with the scale in the caller's memory",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"memory"},
    .make =
        [](bool faulty) {
          return stateless_engine(faulty, run_scales_query_in_place);
        },
};

}  // namespace attnguard
