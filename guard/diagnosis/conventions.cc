#include "guard/diagnosis/conventions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "guard/base/text.h"

namespace attnguard {
namespace {

// What another reading makes of one term: the text of the term in its place,
// or nullopt where the reading says nothing about such a term.
using Reading =
    std::function<std::optional<std::string>(const MaskTerm&, const Problem&)>;

struct NamedReading {
  std::string_view id;
  Reading read;
};

std::string number(std::int64_t value) { return std::to_string(value); }

std::string joined(const std::vector<std::int64_t>& values) {
  std::string text;
  for (std::int64_t value : values) {
    if (!text.empty()) text += ':';
    text += number(value);
  }
  return text;
}

// The term's own text.
std::string text_of(const MaskTerm& term) {
  std::string text(term.kind->name);
  for (std::size_t i = 0; i < term.values.size(); ++i)
    text.append(i == 0 ? "(" : ",")
        .append(term.kind->parameters[i].name)
        .append("=")
        .append(joined(term.values.list(i)));
  if (!term.values.empty()) text += ')';
  return text;
}

// The same kind with the named parameter changed by `step`.
Reading with_parameter(std::string_view parameter, std::int64_t step) {
  return [parameter, step](const MaskTerm& term,
                           const Problem&) -> std::optional<std::string> {
    const auto& parameters = term.kind->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name != parameter || parameters[i].list) continue;
      // -1 is "all": there is no one more or less of it.
      if (term.values[i] < 0 ||
          term.values[i] + step <
              std::max<std::int64_t>(parameters[i].lowest, 0))
        return std::nullopt;
      MaskTerm changed = term;
      changed.values.set(i, {term.values[i] + step});
      return text_of(changed);
    }
    return std::nullopt;
  };
}

// One kind for the other, both ways, parameters kept.
Reading swapped(std::string_view one, std::string_view other) {
  return [one, other](const MaskTerm& term,
                      const Problem&) -> std::optional<std::string> {
    const std::string_view name = term.kind->name;
    if (name != one && name != other) return std::nullopt;
    return std::string(name == one ? other : one) +
           text_of(term).substr(name.size());
  };
}

bool is(const MaskTerm& term, std::string_view kind) {
  return term.kind->name == kind;
}

// The left padding that the problem's mask has beside the term; "0" if none.
std::string padding_of(const Problem& problem) {
  for (const MaskTerm& term : problem.mask.terms())
    if (is(term, "left_padding") || is(term, "left_padding_keys"))
      return joined(term.values.list(0));
  return "0";
}

std::optional<std::string> alignment(const MaskTerm& term,
                                     const Problem& problem) {
  for (const auto& pair :
       {std::pair{"causal_top_left", "causal_bottom_right"},
        std::pair{"sliding_window", "sliding_window_top_left"}})
    if (auto text = swapped(pair.first, pair.second)(term, problem))
      return text;
  return std::nullopt;
}

// A window that ends with the query's own key reaches as far behind it, or
// the other way round.
std::optional<std::string> window_sides(const MaskTerm& term, const Problem&) {
  if (is(term, "sliding_window") || is(term, "sliding_window_top_left")) {
    const std::int64_t left = term.values[0], right = term.values[1];
    if (left < 0 || (right != 0 && right != left)) return std::nullopt;
    return std::string(term.kind->name) + "(left=" + number(left) +
           ",right=" + number(right == 0 ? left : 0) + ")";
  }
  if (is(term, "sliding_window_keys"))
    return "sliding_window_two_sided(width=" + number(term.values[0] - 1) + ")";
  if (is(term, "sliding_window_two_sided"))
    return "sliding_window_keys(keys=" + number(term.values[0] + 1) + ")";
  return std::nullopt;
}

// The width of a window is all of it, or what lies on one side.
std::optional<std::string> window_width(const MaskTerm& term, const Problem&) {
  if (is(term, "sliding_window_two_sided"))
    return "window_symmetric(width=" + number(term.values[0]) + ")";
  if (is(term, "window_symmetric"))
    return "sliding_window_two_sided(width=" + number(term.values[0]) + ")";
  return std::nullopt;
}

// One side of the window has no end.
Reading unbounded(std::size_t side) {
  return [side](const MaskTerm& term,
                const Problem&) -> std::optional<std::string> {
    if (!is(term, "sliding_window") && !is(term, "sliding_window_top_left"))
      return std::nullopt;
    if (term.values[side] < 0) return std::nullopt;
    MaskTerm changed = term;
    changed.values.set(side, {-1});
    return text_of(changed);
  };
}

std::optional<std::string> chunk_origin(const MaskTerm& term,
                                        const Problem& problem) {
  if (is(term, "chunked_local_from_padding"))
    return "chunked_local(chunk=" + number(term.values[0]) + ")";
  if (!is(term, "chunked_local")) return std::nullopt;
  return "chunked_local_from_padding(chunk=" + number(term.values[0]) +
         ",pad=" + padding_of(problem) + ")";
}

// What is causal but for a part of the keys is causal for all.
std::optional<std::string> plainly_causal(const MaskTerm& term,
                                          const Problem&) {
  if (is(term, "prefix_lm") || is(term, "bidirectional_spans") ||
      is(term, "tree"))
    return "causal_bottom_right";
  return std::nullopt;
}

std::optional<std::string> causal_where_full(const MaskTerm& term,
                                             const Problem&) {
  if (is(term, "full")) return "causal_bottom_right";
  return std::nullopt;
}

std::optional<std::string> causal_top_left_where_full(const MaskTerm& term,
                                                      const Problem&) {
  if (is(term, "full")) return "causal_top_left";
  return std::nullopt;
}

// In the order in which they are preferred where several explain the same.
const std::vector<NamedReading>& all_readings() {
  static const std::vector<NamedReading> kReadings = {
      {"alignment", alignment},
      {"causal alignment", swapped("causal_top_left", "causal_bottom_right")},
      {"window alignment",
       swapped("sliding_window", "sliding_window_top_left")},
      {"window one more on the left", with_parameter("left", 1)},
      {"window one less on the left", with_parameter("left", -1)},
      {"window one more on the right", with_parameter("right", 1)},
      {"window one less on the right", with_parameter("right", -1)},
      {"one more key in the window", with_parameter("keys", 1)},
      {"one key less in the window", with_parameter("keys", -1)},
      {"window one wider", with_parameter("width", 1)},
      {"window one narrower", with_parameter("width", -1)},
      {"window two wider", with_parameter("width", 2)},
      {"window two narrower", with_parameter("width", -2)},
      {"window sides", window_sides},
      {"window width", window_width},
      {"window without a left end", unbounded(0)},
      {"window without a right end", unbounded(1)},
      {"prefix one longer", with_parameter("prefix", 1)},
      {"prefix one shorter", with_parameter("prefix", -1)},
      {"chunk origin", chunk_origin},
      {"left padding", swapped("left_padding", "left_padding_keys")},
      {"plainly causal", plainly_causal},
      {"causal where full", causal_where_full},
      {"causal, top left, where full", causal_top_left_where_full},
  };
  return kReadings;
}

class ConventionCollector {
 public:
  explicit ConventionCollector(const Problem& problem) : problem_(problem) {}

  void add_mask(std::string id, const std::string& text) {
    Result<Mask> mask = Mask::parse(text);
    if (!mask.ok() || mask.value() == problem_.mask) return;
    Problem other = problem_;
    other.mask = std::move(mask.value());
    std::string statement = "consistent with " + other.mask.text() +
                            "; the policy says " + problem_.mask.text();
    add({std::move(id), std::move(other), std::move(statement)});
  }

  void add_scale(std::string id, double scale) {
    if (scale == problem_.scale()) return;
    Problem other = problem_;
    other.softmax_scale = scale;
    std::string statement =
        "consistent with softmax_scale=" + format_double(scale) +
        "; the policy says " + format_double(problem_.scale());
    add({std::move(id), std::move(other), std::move(statement)});
  }

  std::vector<Convention> take() { return std::move(found_); }

 private:
  void add(Convention convention) {
    if (!convention.problem.validate().ok()) return;
    for (const Convention& other : found_)
      if (other.problem == convention.problem) return;
    found_.push_back(std::move(convention));
  }

  const Problem& problem_;
  std::vector<Convention> found_;
};

// The mask with every term as the reading has it; nullopt when it says nothing
// about any of them.
std::optional<std::string> read_mask(const Problem& problem,
                                     const Reading& read) {
  bool changed = false;
  std::string text;
  for (const MaskTerm& term : problem.mask.terms()) {
    const std::optional<std::string> other = read(term, problem);
    changed |= other.has_value();
    if (!text.empty()) text += '+';
    text += other.value_or(text_of(term));
  }
  if (!changed) return std::nullopt;
  return text;
}

}  // namespace

std::vector<Convention> alternative_conventions(const Problem& problem) {
  ConventionCollector collector(problem);
  for (const NamedReading& reading : all_readings())
    if (const auto text = read_mask(problem, reading.read))
      collector.add_mask(std::string(reading.id), *text);
  const std::vector<MaskTerm>& terms = problem.mask.terms();
  for (std::size_t left_out = 0; terms.size() > 1 && left_out < terms.size();
       ++left_out) {
    std::string text;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (i == left_out) continue;
      if (!text.empty()) text += '+';
      text += text_of(terms[i]);
    }
    collector.add_mask("without " + std::string(terms[left_out].kind->name),
                       text);
  }
  collector.add_mask("full", "full");
  collector.add_scale("scale of one", 1);
  collector.add_scale("default scale",
                      1 / std::sqrt(static_cast<double>(problem.head_dim_qk)));
  return collector.take();
}

}  // namespace attnguard
