#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {
namespace {

Engine make_overruns() {
  Engine engine = variant_engine({}, {}, {});
  engine.run = [run = engine.run](const AttentionCall& call) {
    Status status = run(call);
    const std::int64_t end = call.problem->extent(TensorRole::kOutput);
    const Dtype dtype = call.output.dtype;
    const double zero = 0;
    if (end > 0)
      encode(
          dtype, &zero, 1,
          call.output.data + end * static_cast<std::int64_t>(dtype_size(dtype)),
          1);
    return status;
  };
  return engine;
}

}  // namespace

const BuiltinEngine kBuiltinOverruns = {
    .name = "overruns",
    .summary = "known bad: writes one element past the end of the output",
    .make = make_overruns,
};

}  // namespace attnguard
