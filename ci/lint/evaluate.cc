#include "ci/lint/evaluate.h"

#include <algorithm>
#include <cmath>

#include "ci/lint/array_ops.h"

namespace attnguard::lint {
namespace {

// Deeper than any mask is made; also ends cycles.
constexpr int kMostValueDepth = 100;

Dims nominal(const Array& shape) {
  Dims dims;
  for (double dim : shape.values)
    dims.push_back(std::abs(dim) < 1e15 ? static_cast<std::int64_t>(dim)
                                        : Evaluator::kNominal);  // NaN too.
  return dims;
}

// Axes of Unsqueeze and Squeeze: an attribute before opset 13.
std::optional<std::vector<std::int64_t>> axes_of(const Node& node,
                                                 const Array* input) {
  const auto found = node.attributes.find("axes");
  if (found != node.attributes.end()) return found->second.integers;
  if (input == nullptr || !input->known()) return std::nullopt;
  return nominal(*input);
}

ArrayPtr unsqueeze(const Array& a, std::vector<std::int64_t> axes) {
  const auto rank = a.rank() + static_cast<std::int64_t>(axes.size());
  for (std::int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return nullptr;
  }
  Dims dims;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < rank; ++i) {
    const bool added = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!added && next == a.dims.size()) return nullptr;
    dims.push_back(added ? 1 : a.dims[next++]);
  }
  return std::make_shared<Array>(Array{a.type, std::move(dims), a.values});
}

ArrayPtr squeeze(const Array& a, const std::vector<std::int64_t>& axes) {
  auto made = std::make_shared<Array>(Array{a.type, {}, a.values});
  for (std::int64_t i = 0; i < a.rank(); ++i) {
    const std::int64_t dim = a.dims[static_cast<std::size_t>(i)];
    const bool named = std::any_of(axes.begin(), axes.end(), [&](auto axis) {
      return axis == i || axis + a.rank() == i;
    });
    if (named && dim != 1) return nullptr;
    if (!named && !(axes.empty() && dim == 1)) made->dims.push_back(dim);
  }
  return made;
}

ArrayPtr range(const Array& start, const Array& limit, const Array& step) {
  if (start.values.size() != 1 || limit.values.size() != 1 || !step.uniform() ||
      step.values[0] != 1 || !start.known())
    return nullptr;
  const double first = start.values[0];
  const double length = limit.known()
                            ? std::max(0.0, std::ceil(limit.values[0] - first))
                            : static_cast<double>(Evaluator::kNominal);
  if (!(length <= static_cast<double>(Evaluator::kMostElements)))
    return nullptr;
  ArrayPtr made =
      filled(start.type, {static_cast<std::int64_t>(length)}, first);
  auto counted = std::make_shared<Array>(*made);
  for (std::size_t i = 0; i < counted->values.size(); ++i)
    counted->values[i] += static_cast<double>(i);
  return counted;
}

}  // namespace

bool Array::known() const {
  return std::none_of(values.begin(), values.end(),
                      [](double value) { return std::isnan(value); });
}

bool Array::uniform() const {
  return !values.empty() && known() &&
         std::all_of(values.begin(), values.end(),
                     [this](double value) { return value == values[0]; });
}

ArrayPtr Evaluator::evaluate(const Graph& graph, const std::string& value) {
  return compute(graph, value, 0);
}

ArrayPtr Evaluator::compute(const Graph& graph, const std::string& value,
                            int depth) {
  if (value.empty() || depth > kMostValueDepth) return nullptr;
  const Key key{graph.owner(value), value};
  const auto [entry, fresh] = known_.emplace(key, nullptr);
  if (!fresh) return entry->second;  // Null within a cycle.
  ArrayPtr made;
  if (const Tensor* tensor = graph.constant(value))
    made = load(*tensor);
  else if (const Node* node = graph.producer(value);
           node != nullptr && node->domain.empty() && node->output(0) == value)
    made = apply(*node, depth + 1);
  // A file of a few bytes can ask for any number of large arrays.
  if (made != nullptr) {
    held_ += static_cast<std::int64_t>(made->values.size());
    if (held_ > kMostHeld) {
      notes_.insert("the constants behind '" + value +
                    "' are too large to compute; not judged");
      made = nullptr;
    }
  }
  return known_[key] = made;
}

ArrayPtr Evaluator::load(const Tensor& tensor) {
  Result<std::vector<double>> values = tensor.load();
  if (values.ok())
    return std::make_shared<Array>(
        Array{tensor.type, tensor.dims, std::move(values.value())});
  notes_.insert(values.status().message() +
                "; what depends on it is not judged");
  return nullptr;
}

ArrayPtr Evaluator::input(const Node& node, std::size_t index, int depth) {
  return compute(*node.graph, node.input(index), depth);
}

ArrayPtr Evaluator::apply_shape(const Node& node, int depth) {
  if (node.is("Shape")) {
    const ValueType* type = node.graph->type(node.input(0));
    Array shape{kInt64, {}, {}};
    if (type != nullptr && type->dims) {
      for (std::int64_t dim : *type->dims)
        shape.values.push_back(dim < 0 ? std::nan("")
                                       : static_cast<double>(dim));
    } else if (const auto known = rank(*node.graph, node.input(0))) {
      shape.values.assign(static_cast<std::size_t>(*known), std::nan(""));
    } else {
      return nullptr;
    }
    shape.dims = {static_cast<std::int64_t>(shape.values.size())};
    return std::make_shared<Array>(std::move(shape));
  }
  const ArrayPtr a = input(node, 0, depth);
  if (a == nullptr) return nullptr;
  if (node.is("ConstantOfShape")) {
    const auto found = node.attributes.find("value");
    if (found == node.attributes.end() || found->second.tensor == nullptr)
      return filled(kFloat, nominal(*a), 0);
    const ArrayPtr value = load(*found->second.tensor);
    if (value == nullptr || value->values.size() != 1) return nullptr;
    return filled(value->type, nominal(*a), value->values[0]);
  }
  if (node.is("Concat")) {
    auto made = std::make_shared<Array>(*a);
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const ArrayPtr next = input(node, i, depth);
      if (next == nullptr || next->rank() != 1) return nullptr;
      made->values.insert(made->values.end(), next->values.begin(),
                          next->values.end());
      if (made->values.size() > 4096) return nullptr;  // Shapes are short.
    }
    if (made->rank() != 1) return nullptr;
    made->dims = {static_cast<std::int64_t>(made->values.size())};
    return made;
  }
  return nullptr;
}

ArrayPtr Evaluator::apply(const Node& node, int depth) {
  if (node.is_any({"Shape", "ConstantOfShape", "Concat"}))
    return apply_shape(node, depth);
  const ArrayPtr a = input(node, 0, depth);
  if (a == nullptr) return nullptr;
  if (node.is_any({"Identity", "Dropout"})) return a;
  if (node.is("Not"))
    return map_op(*a, kBool, [](double x) {
      return std::isnan(x) ? x : static_cast<double>(x == 0);
    });
  if (node.is("Neg")) return map_op(*a, a->type, [](double x) { return -x; });
  if (node.is("Cast")) {
    const int type = static_cast<int>(node.integer("to").value_or(0));
    return map_op(*a, type, [type](double x) { return as_type(x, type); });
  }
  if (node.is("Transpose")) {
    const auto perm = node.attributes.find("perm");
    return transpose_op(*a, perm == node.attributes.end()
                                ? std::vector<std::int64_t>{}
                                : perm->second.integers);
  }
  const ArrayPtr b = input(node, 1, depth);
  if (node.is("Trilu")) {
    if (!node.input(1).empty() && (b == nullptr || !b->uniform()))
      return nullptr;
    const double k = b != nullptr ? std::clamp(b->values[0], -1e9, 1e9) : 0;
    return trilu_op(*a, node.integer("upper").value_or(1) != 0,
                    static_cast<std::int64_t>(k));
  }
  if (node.is_any({"Unsqueeze", "Squeeze"})) {
    auto axes = axes_of(node, b.get());
    if (!axes && node.is("Squeeze") && node.input(1).empty()) axes.emplace();
    if (!axes) return nullptr;
    return node.is("Squeeze") ? squeeze(*a, *axes) : unsqueeze(*a, *axes);
  }
  if (node.is("Slice")) {
    // A buffer cut to lengths that only a run knows keeps its triangle, since
    // rows and columns are cut to the same sequence.
    const ArrayPtr ends = input(node, 2, depth);
    if (b == nullptr || ends == nullptr || !b->known() || !ends->known())
      return a->rank() >= 2 ? a : nullptr;
    return slice_op(*a, *b, *ends, input(node, 3, depth).get(),
                    input(node, 4, depth).get());
  }
  if (b == nullptr) return nullptr;
  if (node.is("CastLike"))
    return map_op(*a, b->type, [&](double x) { return as_type(x, b->type); });
  if (node.is("Expand")) return expand_op(*a, nominal(*b));
  if (node.is("Reshape"))
    return b->known() || a->values.size() == 1 ? reshape_op(*a, nominal(*b))
                                               : nullptr;
  if (node.is("Gather"))
    return node.integer("axis").value_or(0) == 0 ? gather_op(*a, *b) : nullptr;
  if (node.is_any({"Where", "Range"})) {
    const ArrayPtr c = input(node, 2, depth);
    if (c == nullptr) return nullptr;
    return node.is("Where") ? where_op(*a, *b, *c) : range(*a, *b, *c);
  }
  return node.inputs.size() == 2 ? binary_op(node.op, *a, *b) : nullptr;
}

std::optional<std::int64_t> Evaluator::rank(const Graph& graph,
                                            const std::string& value) {
  return rank_at(graph, value, 0);
}

std::optional<std::int64_t> Evaluator::rank_at(const Graph& graph,
                                               const std::string& value,
                                               int depth) {
  if (const Tensor* tensor = graph.constant(value))
    return static_cast<std::int64_t>(tensor->dims.size());
  if (const ValueType* type = graph.type(value); type != nullptr && type->dims)
    return static_cast<std::int64_t>(type->dims->size());
  const Node* node = graph.producer(value);
  // Two branches a step at most, so the depth bounds the work.
  if (node == nullptr || depth > 12) return std::nullopt;
  if (node->is("Transpose")) {
    const auto perm = node->attributes.find("perm");
    if (perm != node->attributes.end())
      return static_cast<std::int64_t>(perm->second.integers.size());
  }
  if (node->is_any({"Reshape", "Expand"})) {
    const ArrayPtr shape = evaluate(*node->graph, node->input(1));
    if (shape != nullptr && node->is("Reshape"))
      return static_cast<std::int64_t>(shape->values.size());
  }
  if (node->is_any({"Transpose", "Softmax", "Cast", "Identity", "Dropout",
                    "Slice", "Tanh", "Clip", "Concat"}))
    return rank_at(*node->graph, node->input(0), depth + 1);
  if (node->is_any({"MatMul", "Add", "Sub", "Mul", "Div", "Where"})) {
    const std::size_t first = node->is("Where") ? 1 : 0;
    const auto a = rank_at(*node->graph, node->input(first), depth + 1);
    const auto b = rank_at(*node->graph, node->input(first + 1), depth + 1);
    if (a && b) return std::max(*a, *b);
    // Scores have heads or a batch in front; what is put on them is broadcast.
    const auto known = a ? a : b;
    if (known && *known > 2 && !node->is("MatMul")) return known;
  }
  if (node->is("Unsqueeze")) {
    const auto a = rank_at(*node->graph, node->input(0), depth + 1);
    const ArrayPtr input = evaluate(*node->graph, node->input(1));
    const auto axes = axes_of(*node, input.get());
    if (a && axes) return *a + static_cast<std::int64_t>(axes->size());
  }
  if (node->is("Einsum")) {
    const auto found = node->attributes.find("equation");
    if (found == node->attributes.end()) return std::nullopt;
    const std::string& text = found->second.text;
    const std::size_t arrow = text.find("->");
    if (arrow == text.npos || text.find('.') != text.npos) return std::nullopt;
    return std::count_if(
        text.begin() + static_cast<std::ptrdiff_t>(arrow), text.end(),
        [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
  }
  return std::nullopt;
}

}  // namespace attnguard::lint
