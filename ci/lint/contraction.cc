#include "ci/lint/contraction.h"

namespace attnguard::lint {
namespace {

struct Equation {
  std::string terms[2], output;
};

// "bhqd,bhkd->bhqk"; nullopt for anything but two terms with an output. An
// ellipsis stands in front, where it moves no axis counted from the end.
std::optional<Equation> equation_of(const Node& node) {
  const auto found = node.attributes.find("equation");
  if (found == node.attributes.end() || node.inputs.size() != 2)
    return std::nullopt;
  std::string text;
  for (char c : found->second.text)
    if (c != ' ') text += c;
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == text.npos || arrow == text.npos || arrow < comma)
    return std::nullopt;
  Equation made{
      {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)},
      text.substr(arrow + 2)};
  for (std::string* term : {&made.terms[0], &made.terms[1], &made.output}) {
    if (term->starts_with("...")) term->erase(0, 3);
    if (term->find_first_of(".,>") != term->npos) return std::nullopt;
  }
  return made;
}

int axis_in(const std::string& term, char label) {
  const std::size_t at = term.find(label);
  return at == term.npos ? 0
                         : static_cast<int>(at) - static_cast<int>(term.size());
}

bool has(const std::string& term, char label) {
  return term.find(label) != term.npos;
}

bool transposed(const Node& node, std::size_t operand) {
  return node.integer(operand == 0 ? "transA" : "transB").value_or(0) != 0;
}

}  // namespace

bool is_contraction(const Node& node) {
  if (node.domain == "com.microsoft") return node.is("FusedMatMul");
  return node.domain.empty() && node.is_any({"MatMul", "Gemm", "Einsum"});
}

Axes weight_axes(const Node& node, std::size_t operand) {
  if (operand > 1) return {};
  if (!node.is("Einsum")) {
    // The left operand is summed over its last axis, the right one over the
    // last but one.
    const bool last = (operand == 0) != transposed(node, operand);
    return last ? Axes{-2, -1} : Axes{-1, -2};
  }
  const auto equation = equation_of(node);
  if (!equation) return {};
  const std::string& weights = equation->terms[operand];
  const std::string& values = equation->terms[1 - operand];
  Axes axes;
  int sums = 0;
  for (char label : weights) {
    if (!has(equation->output, label) && has(values, label)) {
      axes.key = axis_in(weights, label);
      ++sums;
    }
    // Grouped heads are no axis of the values either; queries come last.
    if (has(equation->output, label) && !has(values, label))
      axes.query = axis_in(weights, label);
  }
  return sums == 1 ? axes : Axes{};
}

std::optional<std::size_t> key_operand(const Node& node, int key_axis) {
  if (!node.is("Einsum"))
    return key_axis == -1   ? std::optional<std::size_t>(1)
           : key_axis == -2 ? std::optional<std::size_t>(0)
                            : std::nullopt;
  const auto equation = equation_of(node);
  if (!equation || key_axis >= 0) return std::nullopt;
  const int at = static_cast<int>(equation->output.size()) + key_axis;
  if (at < 0) return std::nullopt;
  const char label = equation->output[static_cast<std::size_t>(at)];
  for (std::size_t operand : {0, 1})
    if (has(equation->terms[operand], label) &&
        !has(equation->terms[1 - operand], label))
      return operand;
  return std::nullopt;
}

}  // namespace attnguard::lint
