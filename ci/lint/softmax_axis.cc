// softmax-axis: the weights of a query must sum to 1 over its keys.
#include "ci/lint/rule.h"

namespace attnguard::lint {
namespace {

// The rank of the Softmax's operand, from the file or a Transpose nearby.
std::optional<std::int64_t> softmax_rank(const Attention& attention,
                                         Evaluator& evaluator) {
  const Node& node = *attention.node;
  for (const std::string& value : {node.input(0), node.output(0)})
    if (const auto rank = evaluator.rank(*node.graph, value)) return rank;
  if (attention.reshaped) return std::nullopt;
  for (const Step& step : attention.after) {
    const auto perm = step.node->attributes.find("perm");
    if (step.node->is_any({"Reshape", "Squeeze", "Unsqueeze"})) break;
    if (step.node->is("Transpose") && perm != step.node->attributes.end())
      return static_cast<std::int64_t>(perm->second.integers.size());
  }
  return std::nullopt;
}

std::string axis_name(int axis, const Axes& axes) {
  const std::string text = "axis " + std::to_string(axis);
  if (axis == axes.key) return text + " (keys)";
  if (axis == axes.query) return text + " (queries)";
  return text + " (neither queries nor keys)";
}

void not_judged(const Node& node, const std::string& why,
                std::vector<Finding>& findings) {
  findings.push_back({kSoftmaxAxis.id, node.name, "not judged: " + why,
                      "run shape inference on the model, and lint it again",
                      true});
}

void judge_softmax_axis(const Attention& attention, const Masks&,
                        Evaluator& evaluator, std::vector<Finding>& findings) {
  if (attention.fused) return;
  const Node& node = *attention.node;
  const bool merges = node.graph->opset < 13;
  const std::int64_t axis = node.integer("axis").value_or(merges ? 1 : -1);
  if (attention.axes.key == 0)
    return not_judged(node,
                      "the order of axes between the Softmax and "
                      "the product with the values is not known",
                      findings);
  std::int64_t from_end = axis;
  if (axis >= 0) {
    const auto rank = softmax_rank(attention, evaluator);
    if (!rank)
      return not_judged(
          node,
          "its axis " + std::to_string(axis) +
              " counts from the front, and the file does not say how "
              "many axes the scores have",
          findings);
    from_end = axis - *rank;
  }
  // Before opset 13 all axes from the given one on are one.
  const bool over_keys =
      from_end == attention.axes.key && (!merges || from_end == -1);
  if (over_keys) return;
  // Reshape may move axes: of what stands in front of it we know too little.
  if (attention.reshaped && attention.axes.key != -1)
    return not_judged(node,
                      "a Reshape stands between it and the product with "
                      "the values",
                      findings);
  const int key = attention.axes.key;
  std::string over = axis_name(static_cast<int>(from_end), attention.axes);
  if (merges && from_end < -1)
    over = "all axes from " + std::to_string(from_end) +
           " on at once (Softmax before opset 13 merges them)";
  findings.push_back(
      {kSoftmaxAxis.id, node.name,
       "the Softmax runs over " + over + ", but " + attention.output->name +
           " sums the weights over axis " + std::to_string(key) +
           ", the keys. The weights of a query do not sum to 1, and under a "
           "causal mask later tokens reach into earlier rows",
       "normalise over axis " + std::to_string(key) +
           (merges && key != -1
                ? " (before opset 13: transpose it to the end first)"
                : "")});
}

}  // namespace

const Rule kSoftmaxAxis = {.id = "softmax-axis",
                           .summary = "the Softmax runs over the keys",
                           .explanation =
                               R"(softmax-axis: the Softmax runs over the keys

What it sees
  The product of weights and values says which axis of the weights is the key
  axis: the one it sums over. Transposes between it and the Softmax are followed
  back. The Softmax must run over this axis and no other. Before opset 13 its
  axis defaults to 1 and all axes from there on are merged, from 13 on it
  defaults to the last axis.

What it looks like
  Columns of weights sum to 1 in place of rows. The weight of key 0 in row 0 is
  divided by a sum that holds the scores of later rows: training loss falls too
  far, and generation is poor.

Fix
  dim=-1 on scores [..., query, key].
)",
                           .one = judge_softmax_axis};

}  // namespace attnguard::lint
