#include "guard/policy/problem_entry.h"

#include <algorithm>
#include <utility>

#include "guard/base/text.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  for (const ProblemField& field : all_problem_fields())
    names.push_back(field.name);
  return names;
}

Status try_value(const ProblemField& field, std::string_view text) {
  Problem scratch;
  return field.set(scratch, text);
}

std::string joined(const YamlNode& list) {
  std::string text;
  for (const YamlNode& item : list.children)
    text += (text.empty() ? "" : ",") + item.text;
  return text;
}

class EntryReader {
 public:
  explicit EntryReader(DiagnosticSink& sink) : sink_(sink) {}

  // Reports what is wrong and returns what is left.
  std::vector<FieldValues> read(const YamlNode& entry) {
    std::vector<FieldValues> fields;
    const auto names = field_names();
    for (const YamlEntry& item : checked_entries(entry, sink_)) {
      if (!known_name(item, "problem field", names, sink_)) continue;
      field_ = find_problem_field(item.name);
      fields.push_back({field_, item.key.offset, {}});
      read_values(item.value, fields.back().values);
    }
    refuse_shorthands_beside_fields(fields);
    std::sort(fields.begin(), fields.end(),
              [](const FieldValues& a, const FieldValues& b) {
                return a.field < b.field;  // Both point into the table.
              });
    return fields;
  }

 private:
  void error(std::size_t offset, const std::string& message) {
    sink_.error(offset, std::string(field_->name) + ": " + message);
  }

  void read_values(const YamlNode& node, std::vector<FieldValue>& values) {
    if (node.kind != YamlNode::Kind::kList) {
      read_scalar(node, values);
      return;
    }
    if (node.children.empty())
      error(node.offset, "the list is empty; give at least one value");
    if (refuse_flat_list(node)) return;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const YamlNode& item = node.children[i];
      if (item.kind == YamlNode::Kind::kNull) {
        error(node.offset, "item " + std::to_string(i + 1) +
                               " of the list is empty; remove it");
      } else if (item.kind == YamlNode::Kind::kList) {
        read_inner_list(item, values);
      } else if (node.flow && refuse_cut_value(node, i)) {
        continue;
      } else {
        read_scalar(item, values);
      }
    }
  }

  void read_scalar(const YamlNode& node, std::vector<FieldValue>& values) {
    if (node.kind == YamlNode::Kind::kRefused) return;
    if (node.kind != YamlNode::Kind::kScalar) {
      error(node.offset, "expected a value or a list, got " + describe(node));
      return;
    }
    std::string problem = number_style_error(node);
    if (problem.empty()) problem = try_value(*field_, node.text).message();
    if (problem.empty()) {
      values.push_back({node.text, node.offset});
    } else {
      error(node.offset, problem);
    }
  }

  // One value made of several: a length per sequence, strides.
  void read_inner_list(const YamlNode& list, std::vector<FieldValue>& values) {
    if (list.children.empty())
      error(list.offset, "the inner list is empty; give its numbers");
    for (const YamlNode& item : list.children) {
      if (item.kind == YamlNode::Kind::kRefused) return;
      std::string problem;
      if (item.kind != YamlNode::Kind::kScalar)
        problem = "expected a number in the inner list, got " + describe(item);
      else
        problem = number_style_error(item);
      if (problem.empty()) continue;
      // The place of a null is that of what follows it.
      const bool null = item.kind == YamlNode::Kind::kNull;
      error(null ? list.offset : item.offset, problem);
      return;
    }
    if (list.children.empty()) return;
    const std::string text = joined(list);
    const Status status = try_value(*field_, text);
    if (status.ok()) {
      values.push_back({text, list.offset});
      return;
    }
    const YamlNode* culprit = culprit_of(list);
    if (culprit == nullptr) {
      error(list.offset, status.message());
    } else {
      error(culprit->offset,
            "expected a number in the inner list, got " + describe(*culprit));
    }
  }

  // The item without which the list would hold only numbers.
  static const YamlNode* culprit_of(const YamlNode& list) {
    for (const YamlNode& item : list.children)
      if (!parse_int(item.text)) return &item;
    return nullptr;
  }

  // `query_strides: [640, 320, 40, 1]` is four wrong values that together
  // would be a good one.
  bool refuse_flat_list(const YamlNode& list) {
    if (list.children.size() < 2) return false;
    for (const YamlNode& item : list.children)
      if (item.kind != YamlNode::Kind::kScalar ||
          try_value(*field_, item.text).ok())
        return false;
    if (!try_value(*field_, joined(list)).ok()) return false;
    error(list.offset, "a list holds alternatives; write the one value [[" +
                           joined(list) + "]], a list in the list");
    return true;
  }

  // In [] a comma ends the item, also within the parentheses of a mask. The
  // pieces up to the one that closes them are reported once.
  bool refuse_cut_value(const YamlNode& list, std::size_t at) {
    const auto unclosed = [](const YamlNode& item) {
      return !item.quoted &&
             std::count(item.text.begin(), item.text.end(), '(') >
                 std::count(item.text.begin(), item.text.end(), ')');
    };
    const auto closing = [](const YamlNode& item) {
      return !item.quoted &&
             std::count(item.text.begin(), item.text.end(), ')') >
                 std::count(item.text.begin(), item.text.end(), '(');
    };
    if (unclosed(list.children[at])) {
      error(list.children[at].offset,
            "the comma after " + describe(list.children[at]) +
                " ends the item; put the whole value in quotes");
      return true;
    }
    if (!closing(list.children[at])) return false;
    for (std::size_t i = at; i-- > 0 && !closing(list.children[i]);)
      if (unclosed(list.children[i])) return true;
    return false;
  }

  void refuse_shorthands_beside_fields(const std::vector<FieldValues>& fields) {
    for (const FieldValues& shorthand : fields)
      for (const FieldValues& other : fields) {
        if (!is_shorthand_of(*shorthand.field, other.field->name)) continue;
        sink_.error(std::max(shorthand.key_offset, other.key_offset),
                    "'" + std::string(shorthand.field->name) + "' sets '" +
                        std::string(other.field->name) +
                        "' too, and both are given; keep one of them");
      }
  }

  DiagnosticSink& sink_;
  const ProblemField* field_ = nullptr;
};

}  // namespace

bool is_shorthand_of(const ProblemField& shorthand, std::string_view name) {
  return shorthand.get == nullptr &&
         name.starts_with(std::string(shorthand.name) + "_");
}

std::vector<FieldValues> read_problem_entry(const YamlNode& entry,
                                            DiagnosticSink& sink) {
  return EntryReader(sink).read(entry);
}

}  // namespace attnguard
