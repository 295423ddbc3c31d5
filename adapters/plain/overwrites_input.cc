#include <vector>

#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {
namespace {

// query *= softmax_scale, in the caller's memory.
void scale_query_in_place(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const TensorView query = {const_cast<std::byte*>(call.query.data),
                            call.query.dtype, call.query.shape,
                            call.query.strides};
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_qk));
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        query.load_row(b, h, i, 0, problem.head_dim_qk, row.data());
        for (double& x : row) x *= problem.scale();
        query.store_row(b, h, i, 0, problem.head_dim_qk, row.data());
      }
}

Engine make_overwrites_input() {
  AttentionVariant variant;
  variant.scale = [](const Problem&) { return 1.0; };
  Engine engine = variant_engine({}, {}, variant);
  engine.run = [run = engine.run](const AttentionCall& call) {
    scale_query_in_place(call);
    return run(call);
  };
  return engine;
}

}  // namespace

const BuiltinEngine kBuiltinOverwritesInput = {
    .name = "overwrites_input",
    .summary = "known bad: scales the query in the caller's memory",
    .make = make_overwrites_input,
};

}  // namespace attnguard
