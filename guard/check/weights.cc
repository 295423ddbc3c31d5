// weights: the reported weights are right, and asking for them changes nothing.
#include "guard/check/check_table.h"
#include "guard/check/rows.h"
#include "guard/check/side_outputs.h"

namespace attnguard {

const CheckInfo kCheckWeights = {
    .id = "weights",
    .summary =
        "the reported weights are right, and asking for them changes nothing",
    .cost = "1 call",
    .explanation =
        R"(weights: the reported weights are right, and asking for them changes nothing

What it sees
  Of engines that give them: every weight of a row against fp64 attention,
  exactly 0 where the mask does not allow the key, and the output with and
  without them. Asking for weights often takes another path through the code.

      output alone          fused kernel, causal
      output and weights    plain softmax, no mask: another function

What it looks like
  A fallback that gets no mask, weights before the mask or before the softmax,
  weights of another head, dropout left in.

Real reports
  huggingface/transformers#30652 (asking for weights loses the mask),
  keras-team/keras#23038 (scores requested: neither mask nor causal flag).

What to look at in the kernel
  The branch that is taken when weights are asked for.

Tolerance
  auto: the relative error of scores, exp and sums; a number: that absolute
  difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      if (!context.has(Feature::kWeights))
        return "the engine does not give weights";
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_weights_check(context);
    },
    .beyond = true,
};

}  // namespace attnguard
