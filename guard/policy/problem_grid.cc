#include "guard/policy/problem_grid.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "guard/policy/problem_entry.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostProblems = 100000;

// Bounds the memory of a grid: every number of every problem, so also the
// per-sequence lengths of large batches and the lists in masks.
constexpr std::size_t kMostNumbers = 4000000;

// One value of each field, by index.
using Choice = std::vector<std::size_t>;

std::size_t saturating_product(std::size_t a, std::size_t b) {
  constexpr std::size_t kMost = kMostProblems * 1000;
  if (a == 0 || b == 0) return 0;
  return a > kMost / b ? kMost : a * b;
}

std::size_t combinations(const std::vector<FieldValues>& fields) {
  std::size_t count = 1;
  for (const FieldValues& field : fields)
    count = saturating_product(count, field.values.size());
  return count;
}

std::size_t numbers_per_problem(const std::vector<FieldValues>& fields) {
  std::size_t numbers = all_problem_fields().size();
  for (const FieldValues& field : fields) {
    std::ptrdiff_t most = 0;
    for (const FieldValue& value : field.values)
      most = std::max(
          most, std::count_if(value.text.begin(), value.text.end(),
                              [](char c) { return c == ',' || c == ':'; }));
    numbers += static_cast<std::size_t>(most);
  }
  return numbers;
}

// Steps the choice, last field fastest; false after the last one.
bool next_choice(const std::vector<FieldValues>& fields, Choice& choice) {
  for (std::size_t i = fields.size(); i-- > 0;) {
    if (++choice[i] < fields[i].values.size()) return true;
    choice[i] = 0;
  }
  return false;
}

Problem build(const std::vector<FieldValues>& fields, const Choice& choice) {
  Problem problem;
  bool kv_heads_given = false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    // Every value was tried before, so this cannot fail.
    (void)fields[i].field->set(problem, fields[i].values[choice[i]].text);
    if (fields[i].field->name == "num_kv_heads") kv_heads_given = true;
  }
  if (!kv_heads_given) problem.num_kv_heads = problem.num_heads;
  return problem;
}

std::string combination_text(const std::vector<FieldValues>& fields,
                             const Choice& choice) {
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i)
    text += (i == 0 ? "" : " ") + std::string(fields[i].field->name) + "=" +
            fields[i].values[choice[i]].text;
  return text;
}

std::set<std::string_view> fields_named_in(std::string_view message) {
  constexpr std::string_view kNameChars = "abcdefghijklmnopqrstuvwxyz_";
  std::set<std::string_view> named;
  while (true) {
    const auto start = message.find_first_of(kNameChars);
    if (start == std::string_view::npos) return named;
    message.remove_prefix(start);
    const auto end =
        std::min(message.find_first_not_of(kNameChars), message.size());
    const ProblemField* field = find_problem_field(message.substr(0, end));
    if (field != nullptr) named.insert(field->name);
    message.remove_prefix(end);
  }
}

// A message about one field alone is about its value; about more, it is about
// the combination, whose place is the entry.
std::optional<std::size_t> value_blamed(const std::vector<FieldValues>& fields,
                                        const Choice& choice,
                                        std::string_view message) {
  const auto named = fields_named_in(message);
  if (named.size() != 1) return std::nullopt;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].field->name == *named.begin() ||
        is_shorthand_of(*fields[i].field, *named.begin()))
      return fields[i].values[choice[i]].offset;
  return std::nullopt;
}

class GridExpander {
 public:
  GridExpander(const SourceText& source, DiagnosticSink& sink)
      : source_(source), sink_(sink) {}

  void expand(const YamlNode& entry) {
    if (entry.kind == YamlNode::Kind::kRefused) return;
    if (entry.kind != YamlNode::Kind::kMap || entry.children.empty()) {
      const bool empty = entry.kind == YamlNode::Kind::kMap;
      sink_.error(entry.offset,
                  "expected a map of problem fields such as 'num_heads: 4', "
                  "got " +
                      (empty ? "an empty one" : describe(entry)));
      return;
    }
    const std::size_t errors_before = sink_.count();
    const auto fields = read_problem_entry(entry, sink_);
    if (sink_.count() > errors_before || !within_limits(fields, entry)) return;
    expand_product(fields, entry);
  }

  std::vector<PolicyProblem> take() { return std::move(problems_); }

 private:
  bool within_limits(const std::vector<FieldValues>& fields,
                     const YamlNode& entry) {
    const std::size_t count = combinations(fields);
    problem_count_ += count;
    number_count_ += saturating_product(count, numbers_per_problem(fields));
    if (problem_count_ > kMostProblems) {
      sink_.error(entry.offset,
                  "with this entry the lists expand to more than " +
                      std::to_string(kMostProblems) +
                      " problems; shorten them or use several policies");
    } else if (number_count_ > kMostNumbers) {
      sink_.error(entry.offset, "with this entry the problems hold more than " +
                                    std::to_string(kMostNumbers) +
                                    " numbers; shorten the lists of lengths");
    } else {
      return true;
    }
    problem_count_ -= count;  // So that later entries are judged without it.
    number_count_ -= saturating_product(count, numbers_per_problem(fields));
    return false;
  }

  void expand_product(const std::vector<FieldValues>& fields,
                      const YamlNode& entry) {
    const SourceLocation location = source_.location(entry.offset);
    std::set<std::string> reported;
    Choice choice(fields.size(), 0);
    if (combinations(fields) == 0) return;
    do {
      Problem problem = build(fields, choice);
      const Status status = problem.validate();
      if (status.ok()) {
        problems_.push_back({std::move(problem), location});
        continue;
      }
      if (!reported.insert(status.message()).second) continue;
      if (const auto blamed = value_blamed(fields, choice, status.message()))
        sink_.error(*blamed, status.message());
      else
        sink_.error(entry.offset, "invalid combination: " + status.message() +
                                      " (" + combination_text(fields, choice) +
                                      ")");
    } while (next_choice(fields, choice));
  }

  const SourceText& source_;
  DiagnosticSink& sink_;
  std::vector<PolicyProblem> problems_;
  std::size_t problem_count_ = 0;
  std::size_t number_count_ = 0;
};

}  // namespace

std::vector<PolicyProblem> expand_problems(const YamlNode& node,
                                           const SourceText& source,
                                           DiagnosticSink& sink) {
  if (node.kind != YamlNode::Kind::kList) {
    if (node.kind != YamlNode::Kind::kRefused)
      sink.error(node.offset,
                 "problems: expected a list whose entries begin with '- ', "
                 "got " +
                     describe(node));
    return {};
  }
  if (node.children.empty())
    sink.error(node.offset,
               "problems: the list is empty, so nothing would be checked; "
               "leave the key out to check the built-in problems");
  GridExpander expander(source, sink);
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (node.children[i].kind == YamlNode::Kind::kNull)
      sink.error(node.offset, "problems: entry " + std::to_string(i + 1) +
                                  " is empty; remove it");
    else
      expander.expand(node.children[i]);
  }
  return expander.take();
}

}  // namespace attnguard
