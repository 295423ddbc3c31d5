#include "ci/lint/masks.h"

#include <algorithm>
#include <cmath>

namespace attnguard::lint {
namespace {

constexpr int kMostMaskDepth = 24;

// Any "minus infinity" seen in practice is beyond it; biases that are one
// number for all keys are not.
constexpr double kLargeNegative = -100;

class Collector {
 public:
  Collector(const Node& node, Axes axes, Evaluator& evaluator, Masks& into)
      : node_(node), axes_(axes), evaluator_(evaluator), into_(into) {}

  void additive(const Graph& graph, const std::string& value, int depth = 0);
  void boolean(const Graph& graph, const std::string& value, Meaning meaning,
               int depth = 0);
  // scores - 1e4 * (1 - mask), as GPT-2 has it.
  void subtractive(const Graph& graph, const Node& node);
  // Put in place of scores by a Where.
  void replaced_by(const Graph& graph, const std::string& value);

 private:
  ArrayPtr known(const Graph& graph, const std::string& value) {
    ArrayPtr array = evaluator_.evaluate(graph, value);
    return array != nullptr && array->known() ? array : nullptr;
  }
  std::optional<Fill> large_negative(const Graph& graph,
                                     const std::string& value) {
    const ArrayPtr array = known(graph, value);
    if (array == nullptr || !array->uniform() ||
        array->values[0] > kLargeNegative)
      return std::nullopt;
    return Fill{&node_, array->values[0], array->type, true};
  }
  void fill(Fill made) {
    if (cast_ != 0) {
      made.value = as_type(made.value, cast_);
      made.type = cast_;
    }
    into_.fills.push_back(made);
  }
  void term(const std::string& value, Meaning meaning, ArrayPtr array) {
    into_.terms.push_back({&node_, value, meaning, axes_, std::move(array)});
  }

  const Node& node_;
  Axes axes_;
  Evaluator& evaluator_;
  Masks& into_;
  bool exhausted() { return --budget_ < 0; }

  int cast_ = 0;      // The outermost Cast around what is looked at.
  int budget_ = 500;  // A mask that is added to itself again and again.
};

bool passes(const Node& node) {
  return node.is_any({"Identity", "Cast", "CastLike", "Unsqueeze", "Squeeze",
                      "Expand", "Reshape", "Slice", "Dropout"});
}

Meaning flipped(Meaning meaning) {
  return meaning == Meaning::kAllowed ? Meaning::kMasked : Meaning::kAllowed;
}

// Axes move under these unless new ones stand in front; then what is inside
// must not be read as queries by keys.
Axes inside(const Node& node, Axes axes) {
  return node.is_any({"Unsqueeze", "Squeeze", "Reshape"}) ? Axes{} : axes;
}

void Collector::additive(const Graph& graph, const std::string& value,
                         int depth) {
  if (const ArrayPtr array = known(graph, value)) {
    if (const auto sentinel = sentinel_of(*array)) {
      term(value, Meaning::kAdditive, array);
      fill({&node_, *sentinel, array->type, true});
    }
    return;
  }
  const Node* node = graph.producer(value);
  if (node == nullptr || depth > kMostMaskDepth || exhausted() ||
      !node->domain.empty())
    return term(value, Meaning::kAdditive, nullptr);
  const Graph& at = *node->graph;
  if (passes(*node)) {
    const int cast = cast_;
    const Axes axes = axes_;
    if (node->is("Cast") && cast_ == 0)
      cast_ = static_cast<int>(node->integer("to").value_or(0));
    axes_ = inside(*node, axes_);
    additive(at, node->input(0), depth + 1);
    cast_ = cast;
    axes_ = axes;
  } else if (node->is("Add")) {
    additive(at, node->input(0), depth + 1);
    additive(at, node->input(1), depth + 1);
  } else if (node->is("Where")) {
    const auto masked = large_negative(at, node->input(1));
    const auto otherwise = large_negative(at, node->input(2));
    if (masked) fill(*masked);
    if (otherwise) fill(*otherwise);
    if (masked || otherwise)
      boolean(at, node->input(0), masked ? Meaning::kMasked : Meaning::kAllowed,
              depth + 1);
    if (!masked) additive(at, node->input(1), depth + 1);
    if (!otherwise) additive(at, node->input(2), depth + 1);
  } else if (node->is("Mul")) {
    for (std::size_t i : {0, 1})
      if (const auto found = large_negative(at, node->input(i))) {
        fill(*found);
        return boolean(at, node->input(1 - i), Meaning::kMasked, depth + 1);
      }
    term(value, Meaning::kAdditive, nullptr);
  } else {
    term(value, Meaning::kAdditive, nullptr);
  }
}

void Collector::boolean(const Graph& graph, const std::string& value,
                        Meaning meaning, int depth) {
  if (const ArrayPtr array = known(graph, value))
    return term(value, meaning, array);
  const Node* node = graph.producer(value);
  if (node == nullptr || depth > kMostMaskDepth || exhausted() ||
      !node->domain.empty())
    return term(value, meaning, nullptr);
  const Graph& at = *node->graph;
  const auto all = [&](Meaning next) {
    for (const std::string& input : node->inputs)
      boolean(at, input, next, depth + 1);
  };
  const auto uniform = [&](std::size_t index, double number) {
    const ArrayPtr array = known(at, node->input(index));
    return array != nullptr && array->uniform() && array->values[0] == number;
  };
  const bool allowed = meaning == Meaning::kAllowed;
  if (passes(*node)) {
    const Axes axes = axes_;
    axes_ = inside(*node, axes_);
    boolean(at, node->input(0), meaning, depth + 1);
    axes_ = axes;
  } else if (node->is("Not")) {
    boolean(at, node->input(0), flipped(meaning), depth + 1);
  } else if (node->is("Sub") && uniform(0, 1)) {
    boolean(at, node->input(1), flipped(meaning), depth + 1);
  } else if (node->is("Equal") && uniform(1, 0)) {
    boolean(at, node->input(0), flipped(meaning), depth + 1);
  } else if ((allowed && node->is_any({"And", "Mul"})) ||
             (!allowed && node->is("Or"))) {
    all(meaning);
  } else {
    term(value, meaning, nullptr);
  }
}

void Collector::subtractive(const Graph& graph, const Node& node) {
  const ArrayPtr array = known(graph, node.input(1));
  if (array == nullptr) return term(node.input(1), Meaning::kAdditive, nullptr);
  auto negative = std::make_shared<Array>(*array);
  for (double& value : negative->values) value = -value;
  const auto sentinel = sentinel_of(*negative);
  if (!sentinel) return;
  term(node.input(1), Meaning::kAdditive, negative);
  fill({&node_, *sentinel, negative->type, true});
}

void Collector::replaced_by(const Graph& graph, const std::string& value) {
  const ArrayPtr array = known(graph, value);
  if (array == nullptr || array->values.empty()) return;
  const double most =
      *std::max_element(array->values.begin(), array->values.end());
  fill({&node_, most, array->type, false});
}

void collect(const Step& step, Evaluator& evaluator, Masks& into) {
  const Node& node = *step.node;
  const Graph& graph = *node.graph;
  Collector collector(node, step.axes, evaluator, into);
  if (node.is("Add")) collector.additive(graph, node.input(1 - step.operand));
  if (node.is("Sub") && step.operand == 0) collector.subtractive(graph, node);
  if (node.is("Mul")) {
    // By zeros and ones: no mask for a Softmax, but meant as one.
    const Origin origin =
        origin_of(graph, node.input(1 - step.operand), evaluator);
    if (origin.mask_like)
      collector.boolean(graph, node.input(1 - step.operand), Meaning::kAllowed);
  }
  if (!node.is("Where")) return;
  if (origin_of(graph, node.input(0), evaluator).guard) return;
  collector.boolean(graph, node.input(0),
                    step.operand == 1 ? Meaning::kAllowed : Meaning::kMasked);
  collector.replaced_by(graph, node.input(3 - step.operand));
}

void collect_fused(const Node& node, Evaluator& evaluator, Masks& into) {
  const bool own = node.domain.empty();  // ai.onnx
  const std::size_t at = own                              ? 3
                         : node.is("MultiHeadAttention")  ? 5
                         : node.is("Attention")           ? 5
                         : node.is("GroupQueryAttention") ? 10
                                                          : 99;
  const std::string& mask = node.input(at);
  if (mask.empty()) return;
  Collector collector(node, Axes{-2, -1}, evaluator, into);
  const ArrayPtr array = evaluator.evaluate(*node.graph, mask);
  const ValueType* type = node.graph->type(mask);
  const bool boolean = (array != nullptr && array->type == kBool) ||
                       (type != nullptr && type->type == kBool);
  if (own && boolean)
    collector.boolean(*node.graph, mask, Meaning::kAllowed);
  else
    collector.additive(*node.graph, mask);
}

bool contains_mask(const std::string& name) {
  std::string lower;
  for (char c : name) lower += static_cast<char>(std::tolower(c));
  return lower.find("mask") != lower.npos &&
         lower.find("head_mask") == lower.npos;
}

}  // namespace

Masks masks_before(const Attention& attention, Evaluator& evaluator) {
  Masks masks;
  for (const Step& step : attention.before) collect(step, evaluator, masks);
  if (attention.fused) collect_fused(*attention.node, evaluator, masks);
  return masks;
}

std::optional<double> sentinel_of(const Array& array) {
  if (array.values.empty() || !array.known()) return std::nullopt;
  const double lowest =
      *std::min_element(array.values.begin(), array.values.end());
  if (lowest > kLargeNegative) return std::nullopt;
  // A bias falls step by step; a mask falls off a cliff.
  for (double value : array.values)
    if (value != lowest && value < lowest / 2 && lowest > -1e30)
      return std::nullopt;
  return array.uniform() ? std::nullopt : std::optional(lowest);
}

Origin origin_of(const Graph& graph, const std::string& value,
                 Evaluator& evaluator) {
  Origin made;
  std::set<const Node*> seen;
  std::vector<std::pair<const Graph*, std::string>> open = {{&graph, value}};
  while (!open.empty()) {
    const auto [at, name] = open.back();
    open.pop_back();
    if (name.empty()) continue;
    const ArrayPtr array = evaluator.evaluate(*at, name);
    if (array != nullptr && array->values.size() > 1) {
      const bool binary =
          std::all_of(array->values.begin(), array->values.end(),
                      [](double number) { return number == 0 || number == 1; });
      made.mask_like |= (binary && array->known() && !array->uniform()) ||
                        sentinel_of(*array).has_value();
    }
    if (at->constant(name) != nullptr) {
      if (array == nullptr || array->values.size() > 1)
        made.sources.insert(name);
      continue;
    }
    const Node* node = at->producer(name);
    if (node == nullptr) {
      made.sources.insert(name);
      const ValueType* type = at->type(name);
      made.mask_like |=
          (type != nullptr && type->type == kBool) || contains_mask(name);
      continue;
    }
    if (!seen.insert(node).second || node->is("Shape")) continue;
    made.random |= node->is_any({"RandomUniform", "RandomUniformLike",
                                 "RandomNormalLike", "Bernoulli", "Dropout"});
    made.guard |= node->is_any({"IsNaN", "IsInf", "Softmax"});
    made.mask_like |=
        node->is_any({"Trilu", "Not", "And", "Or", "Less", "Greater",
                      "LessOrEqual", "Equal", "GreaterOrEqual"});
    if (node->is_any({"MatMul", "Softmax", "Gemm", "Einsum"})) continue;
    for (const std::string& input : node->inputs)
      open.emplace_back(node->graph, input);
  }
  return made;
}

}  // namespace attnguard::lint
