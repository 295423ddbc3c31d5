#include "ci/lint/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnguard::lint {
namespace {

const std::string kNone;

// The innermost graph, outwards from this one, for which `holds` is true.
template <typename Predicate>
const Graph* find_scope(const Graph* graph, Predicate holds) {
  for (; graph != nullptr; graph = graph->parent)
    if (holds(*graph)) return graph;
  return nullptr;
}

bool defines(const Graph& graph, const std::string& value) {
  return graph.producers.contains(value) || graph.constants.contains(value) ||
         std::find(graph.inputs.begin(), graph.inputs.end(), value) !=
             graph.inputs.end();
}

}  // namespace

std::string type_name(int type) {
  switch (type) {
    case kFloat:
      return "fp32";
    case kHalf:
      return "fp16";
    case kDouble:
      return "fp64";
    case kBfloat16:
      return "bf16";
    case kBool:
      return "bool";
    case kInt32:
      return "int32";
    case kInt64:
      return "int64";
    default:
      return "type " + std::to_string(type);
  }
}

double lowest_of(int type) {
  switch (type) {
    case kFloat:
      return std::numeric_limits<float>::lowest();
    case kHalf:
      return -65504.0;
    case kDouble:
      return std::numeric_limits<double>::lowest();
    case kBfloat16:
      return -3.3895313892515355e38;
    default:
      return 0;
  }
}

double as_type(double value, int type) {
  if (std::isnan(value)) return value;
  if (type == kBool) return value != 0 ? 1 : 0;
  if (type == kInt32 || type == kInt64) return std::trunc(value);
  const double lowest = lowest_of(type);
  if (lowest == 0 || std::abs(value) <= -lowest) return value;
  // Up to half a step beyond the largest rounds to it; no mask sits there
  // but the lowest of a wider type, which is far beyond.
  const double step = type == kHalf       ? 16
                      : type == kBfloat16 ? std::ldexp(1.0, 119)
                      : type == kFloat    ? std::ldexp(1.0, 103)
                                          : 0;
  const double most = std::abs(value) < -lowest + step
                          ? -lowest
                          : std::numeric_limits<double>::infinity();
  return std::copysign(most, value);
}

std::optional<std::int64_t> elements_of(const Dims& dims, std::int64_t most) {
  std::int64_t count = 1;
  for (std::int64_t dim : dims)
    if (dim < 0) return std::nullopt;
  for (std::int64_t dim : dims) {
    if (dim != 0 && count > most / dim) return std::nullopt;
    count *= dim;
  }
  return count;
}

const std::string& Node::input(std::size_t index) const {
  return index < inputs.size() ? inputs[index] : kNone;
}

const std::string& Node::output(std::size_t index) const {
  return index < outputs.size() ? outputs[index] : kNone;
}

std::optional<std::int64_t> Node::integer(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? std::nullopt : found->second.integer;
}

bool Node::is_any(std::initializer_list<std::string_view> ops) const {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

void Graph::connect() {
  for (const auto& node : nodes) {
    node->graph = this;
    for (const std::string& output : node->outputs)
      if (!output.empty()) producers.emplace(output, node.get());
    for (const std::string& input : node->inputs) {
      if (input.empty()) continue;
      auto& readers = consumers[input];
      if (readers.empty() || readers.back() != node.get())
        readers.push_back(node.get());
    }
  }
}

const Graph* Graph::owner(const std::string& value) const {
  const Graph* scope = find_scope(
      this, [&](const Graph& graph) { return defines(graph, value); });
  return scope != nullptr ? scope : this;
}

const Node* Graph::producer(const std::string& value) const {
  const Graph* scope = owner(value);
  const auto found = scope->producers.find(value);
  return found == scope->producers.end() ? nullptr : found->second;
}

const Tensor* Graph::constant(const std::string& value) const {
  const Graph* scope = owner(value);
  const auto found = scope->constants.find(value);
  return found == scope->constants.end() ? nullptr : &found->second;
}

const ValueType* Graph::type(const std::string& value) const {
  const Graph* scope = owner(value);
  const auto found = scope->types.find(value);
  return found == scope->types.end() ? nullptr : &found->second;
}

bool Graph::is_input(const std::string& value) const {
  const Graph* scope = owner(value);
  return std::find(scope->inputs.begin(), scope->inputs.end(), value) !=
         scope->inputs.end();
}

bool is_constant(const Graph& graph, const std::string& value) {
  std::set<const Node*> seen;
  std::vector<std::pair<const Graph*, std::string>> open = {{&graph, value}};
  while (!open.empty()) {
    const auto [at, name] = open.back();
    open.pop_back();
    if (at->constant(name) != nullptr) continue;
    const Node* node = at->producer(name);
    if (node == nullptr || node->inputs.empty()) return false;
    if (!seen.insert(node).second) continue;
    for (const std::string& input : node->inputs)
      if (!input.empty()) open.emplace_back(node->graph, input);
  }
  return true;
}

std::set<const Node*> ancestors(const Graph& graph, const std::string& value) {
  std::set<const Node*> seen;
  std::vector<const Node*> open = {graph.producer(value)};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const std::string& input : node->inputs)
      if (!input.empty()) open.push_back(node->graph->producer(input));
  }
  return seen;
}

}  // namespace attnguard::lint
