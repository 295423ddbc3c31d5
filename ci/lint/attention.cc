#include "ci/lint/attention.h"

#include <algorithm>

#include "ci/lint/contraction.h"

namespace attnguard::lint {
namespace {

// More operators than stand between any scores and their Softmax.
constexpr std::size_t kMostSteps = 40;

// The inputs of `node` through which scores or weights may come.
std::vector<std::size_t> ways_through(const Node& node) {
  if (!node.domain.empty()) return {};
  if (node.is("Where")) return {1, 2};
  if (node.is_any({"Add", "Mul", "Sub", "Max", "Min"})) return {0, 1};
  if (node.is_any({"Div", "Cast", "CastLike", "Identity", "Dropout",
                   "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Expand",
                   "Slice", "Clip", "Tanh", "Concat"}))
    return {0};
  return {};
}

// The axis of the input that becomes axis `axis` of a Transpose's output.
int before_transpose(const Node& node, int axis) {
  if (axis == 0) return 0;
  const auto found = node.attributes.find("perm");
  if (found == node.attributes.end()) return 0;  // Reversed, rank unknown.
  const std::vector<std::int64_t>& perm = found->second.integers;
  const auto rank = static_cast<std::int64_t>(perm.size());
  if (axis + rank < 0) return 0;
  const std::int64_t from = perm[static_cast<std::size_t>(axis + rank)];
  return from < 0 || from >= rank ? 0 : static_cast<int>(from - rank);
}

Axes before_step(const Node& node, Axes axes) {
  if (!node.is("Transpose")) return axes;
  return {before_transpose(node, axes.query), before_transpose(node, axes.key)};
}

class Matcher {
 public:
  explicit Matcher(const Node& softmax) { made_.node = &softmax; }

  std::optional<Attention> match() {
    const Node& softmax = *made_.node;
    seen_.clear();
    if (!forward(*softmax.graph, softmax.output(0), made_.after))
      return std::nullopt;
    seen_.clear();
    if (!backward(*softmax.graph, softmax.input(0), made_.before))
      return std::nullopt;
    label_axes();
    return made_;
  }

 private:
  // Follows the weights to the first product that takes them.
  bool forward(const Graph& graph, const std::string& value,
               std::vector<Step>& steps) {
    if (steps.size() > kMostSteps || !seen_.insert(value).second) return false;
    const auto readers = graph.consumers.find(value);
    if (readers == graph.consumers.end()) return false;
    for (const Node* node : readers->second) {
      for (std::size_t operand = 0; operand < node->inputs.size(); ++operand)
        if (node->input(operand) == value && take_output(*node, operand))
          return true;
    }
    for (const Node* node : readers->second)
      for (std::size_t operand : ways_through(*node)) {
        if (node->input(operand) != value) continue;
        steps.push_back({node, operand, {}});
        if (forward(graph, node->output(0), steps)) return true;
        steps.pop_back();
      }
    return false;
  }

  bool take_output(const Node& node, std::size_t operand) {
    if (!is_contraction(node) || operand > 1 ||
        is_constant(*node.graph, node.input(1 - operand)))
      return false;
    const Axes axes = weight_axes(node, operand);
    if (axes.key == 0) return false;
    made_.output = &node;
    output_axes_ = axes;
    return true;
  }

  // Follows the scores back to their product, fills `steps` from there on.
  bool backward(const Graph& graph, const std::string& value,
                std::vector<Step>& steps, std::size_t depth = 0) {
    const Node* node = graph.producer(value);
    if (node == nullptr || depth > kMostSteps || !seen_.insert(value).second ||
        node->output(0) != value)
      return false;
    if (is_contraction(*node)) {
      // x * constant is a linear layer: a classifier or a router.
      if (node->inputs.size() < 2 || is_constant(*node->graph, node->input(1)))
        return false;
      made_.scores = node;
      return true;
    }
    for (std::size_t operand : ways_through(*node))
      if (backward(*node->graph, node->input(operand), steps, depth + 1)) {
        steps.push_back({node, operand, {}});
        return true;
      }
    return false;
  }

  void label_axes() {
    Axes axes = output_axes_;
    for (std::size_t i = made_.after.size(); i-- > 0;) {
      Step& step = made_.after[i];
      step.axes = axes;
      axes = before_step(*step.node, axes);
      made_.reshaped |= step.node->is_any({"Reshape", "Squeeze"});
    }
    made_.axes = axes;
    for (std::size_t i = made_.before.size(); i-- > 0;) {
      Step& step = made_.before[i];
      step.axes = axes;
      axes = before_step(*step.node, axes);
    }
    const auto key = key_operand(*made_.scores, axes.key);
    if (!key) return;
    made_.key = made_.scores->input(*key);
    made_.query = made_.scores->input(1 - *key);
  }

  Attention made_;
  Axes output_axes_;
  std::set<std::string> seen_;
};

bool is_fused(const Node& node) {
  if (node.domain.empty()) return node.is("Attention");
  return node.domain == "com.microsoft" &&
         node.is_any({"Attention", "MultiHeadAttention", "GroupQueryAttention",
                      "PackedAttention", "DecoderMaskedMultiHeadAttention",
                      "PackedMultiHeadAttention", "SparseAttention"});
}

Attention fused(const Node& node) {
  Attention made{.node = &node, .fused = true};
  made.query = node.input(0);
  // com.microsoft Attention projects one input; a packed query has no key.
  const bool packed = node.is("Attention") && !node.domain.empty();
  made.key = packed || node.input(1).empty() ? node.input(0) : node.input(1);
  return made;
}

bool weighs_input(const Node& node) {
  if (node.domain == "com.microsoft")
    return node.is_any({"MatMulNBits", "FusedMatMul", "MatMulBnb4"});
  return node.is_any(
             {"MatMul", "Gemm", "Conv", "MatMulInteger", "QLinearMatMul"}) &&
         is_constant(*node.graph, node.input(node.is("QLinearMatMul") ? 3 : 1));
}

// Inputs from 1 on are shapes, places or lengths, and no sequence.
bool only_first_input(const Node& node) {
  return node.is_any({"Reshape", "Expand", "Slice", "Unsqueeze", "Squeeze",
                      "Tile", "Split", "Pad", "Gather", "CastLike"});
}

bool makes_no_sequence(const Node& node) {
  return node.is_any(
      {"Shape", "Size", "Cos", "Sin", "Range", "ConstantOfShape"});
}

bool is_index(const Graph& graph, const std::string& input) {
  const ValueType* type = graph.type(input);
  return type != nullptr &&
         (type->type == kInt32 || type->type == kInt64 || type->type == kBool);
}

}  // namespace

std::vector<Attention> find_attention(const Model& model) {
  std::vector<Attention> all;
  for (const auto& graph : model.graphs)
    for (const auto& node : graph->nodes) {
      if (is_fused(*node)) {
        all.push_back(fused(*node));
      } else if (node->domain.empty() && node->is("Softmax")) {
        if (auto found = Matcher(*node).match())
          all.push_back(std::move(*found));
      }
    }
  return all;
}

std::set<std::string> sequence_roots(const Graph& graph,
                                     const std::string& value) {
  std::set<std::string> roots;
  std::set<std::pair<const Graph*, std::string>> seen;
  std::vector<std::pair<const Graph*, std::string>> open = {{&graph, value}};
  while (!open.empty()) {
    const auto [at, name] = open.back();
    open.pop_back();
    if (name.empty() || at->constant(name) != nullptr ||
        !seen.emplace(at->owner(name), name).second)
      continue;
    const Node* node = at->producer(name);
    if (node == nullptr) {
      if (at->is_input(name) && !is_index(*at, name)) roots.insert(name);
      continue;
    }
    if (makes_no_sequence(*node)) continue;
    if (weighs_input(*node)) {
      roots.insert(node->input(0));
      continue;
    }
    const std::size_t count = only_first_input(*node) ? 1 : node->inputs.size();
    for (std::size_t i = 0; i < count && i < node->inputs.size(); ++i)
      open.emplace_back(node->graph, node->input(i));
  }
  return roots;
}

bool is_self_attention(const Attention& attention) {
  const Graph& graph = *attention.node->graph;
  if (attention.query.empty() || attention.key.empty()) return false;
  const auto query = sequence_roots(graph, attention.query);
  const auto key = sequence_roots(graph, attention.key);
  return std::any_of(query.begin(), query.end(), [&](const std::string& root) {
    return key.contains(root);
  });
}

}  // namespace attnguard::lint
