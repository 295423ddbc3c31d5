// mask-after-softmax: masked keys must not count in the sum.
#include <algorithm>

#include "ci/lint/rule.h"

namespace attnguard::lint {
namespace {

// The weights are divided by their new sum somewhere after step `from`.
bool renormalised(const Attention& attention, std::size_t from) {
  for (std::size_t i = from; i < attention.after.size(); ++i) {
    const Node& node = *attention.after[i].node;
    const auto readers = node.graph->consumers.find(node.output(0));
    if (readers == node.graph->consumers.end()) continue;
    for (const Node* reader : readers->second)
      if (reader->is_any(
              {"ReduceSum", "ReduceL1", "LpNormalization", "Softmax"}))
        return true;
  }
  return false;
}

// Keys that the same mask hid before have no weight to lose.
bool hidden_before(const Attention& attention, const Origin& after,
                   Evaluator& evaluator) {
  std::set<std::string> before;
  for (const Step& step : attention.before) {
    const Node& node = *step.node;
    if (!node.is_any({"Add", "Where", "Sub"})) continue;
    const std::size_t mask = node.is("Where") ? 0 : 1 - step.operand;
    before.merge(origin_of(*node.graph, node.input(mask), evaluator).sources);
  }
  return !after.sources.empty() &&
         std::includes(before.begin(), before.end(), after.sources.begin(),
                       after.sources.end());
}

void judge_mask_after_softmax(const Attention& attention, const Masks&,
                              Evaluator& evaluator,
                              std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < attention.after.size(); ++i) {
    const Step& step = attention.after[i];
    const Node& node = *step.node;
    if (!node.is_any({"Add", "Sub", "Mul", "Where"})) continue;
    const std::size_t mask = node.is("Where") ? 0 : 1 - step.operand;
    const Origin origin = origin_of(*node.graph, node.input(mask), evaluator);
    if (!origin.mask_like || origin.random || origin.guard) continue;
    if (renormalised(attention, i) ||
        hidden_before(attention, origin, evaluator))
      continue;
    findings.push_back(
        {kMaskAfterSoftmax.id, node.name,
         "mask '" + node.input(mask) + "' is applied by " + node.op +
             " after the Softmax " + attention.node->name +
             ". Masked keys already count in its sum, so what remains does "
             "not sum to 1, and depends on the masked keys",
         "apply the mask to the scores before the Softmax (add -inf), or "
         "divide by the new row sums"});
  }
}

}  // namespace

const Rule kMaskAfterSoftmax = {
    .id = "mask-after-softmax",
    .summary = "masks come before the Softmax, or weights are normalised again",
    .explanation =
        R"(mask-after-softmax: masks come before the Softmax

What it sees
  An Add, Mul or Where with a mask (a triangle, a comparison, a boolean or an
  input called "*mask*") between the Softmax and the product with the values,
  without a sum of the masked weights to divide them by. Dropout, guards against
  NaN, head masks and a mask that has been applied before as well are no
  findings.

What it looks like
  Rows of weights sum to less than 1, the first rows most of all. The sum holds
  the masked scores, so every later token still moves earlier rows.

Fix
  Mask the scores, not the weights.
)",
    .one = judge_mask_after_softmax};

}  // namespace attnguard::lint
