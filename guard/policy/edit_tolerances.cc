#include "guard/policy/edit_tolerances.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "guard/policy/policy_text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Entry {
  const YamlNode* key = nullptr;
  const YamlNode* value = nullptr;
};

Entry find_key(const YamlNode& map, std::string_view name) {
  for (std::size_t i = 0; i + 1 < map.children.size(); i += 2)
    if (map.children[i].text == name)
      return {&map.children[i], &map.children[i + 1]};
  return {};
}

// Behind the bracket that closes the one at `offset`, quotes and comments
// passed over.
std::size_t bracket_end(std::string_view text, std::size_t offset) {
  int depth = 0;
  char quote = 0;
  for (std::size_t at = offset; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\' && quote == '"') ++at;
      if (c == quote) quote = 0;
    } else if (c == '#' && at > 0 &&
               (text[at - 1] == ' ' || text[at - 1] == '\n')) {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return text.size();
}

// A place on the last line that the node takes.
std::size_t last_place(const YamlNode& node, std::string_view text) {
  if (node.flow) return bracket_end(text, node.offset) - 1;
  std::size_t last = node.offset;
  for (const YamlNode& child : node.children)
    // The place of a null is that of what follows it.
    if (child.kind != YamlNode::Kind::kNull)
      last = std::max(last, last_place(child, text));
  return last;
}

using ByDtype = std::map<Dtype, NewTolerance>;

// The text of the tolerances, each line behind `indent` blanks, without the
// line `tolerances:` itself.
Lines tolerance_lines(std::span<const std::string> heading,
                      const std::map<std::string, ByDtype>& by_check,
                      std::size_t indent) {
  const std::string blanks(indent, ' ');
  Lines lines;
  for (const std::string& line : heading) lines.push_back(blanks + "# " + line);
  for (const auto& [check, by_dtype] : by_check) {
    lines.push_back(blanks + check + ':');
    for (const auto& [dtype, one] : by_dtype) {
      for (const std::string& comment : one.comments)
        lines.push_back(blanks + "  # " + comment);
      lines.push_back(blanks + "  " + std::string(dtype_name(dtype)) + ": " +
                      tolerance_text(one.tolerance));
    }
  }
  return lines;
}

class Editor {
 public:
  Editor(const SourceText& source, const YamlNode& root,
         const std::string& engine, std::span<const std::string> heading,
         std::map<std::string, ByDtype> by_check)
      : source_(source),
        root_(root),
        engine_(engine),
        heading_(heading),
        by_check_(std::move(by_check)),
        lines_(lines_of(source.text())) {}

  // Empty, or why it cannot be done.
  std::string edit() {
    if (root_.kind != YamlNode::Kind::kMap || root_.flow)
      return "the policy is written in {}; write its keys in lines";
    const Entry engines = find_key(root_, "engines");
    if (engines.key == nullptr) {
      add_engines();
      return {};
    }
    if (engines.value->kind == YamlNode::Kind::kMap &&
        engines.value->children.empty()) {
      insert(drop_empty(*engines.value), entry_lines(2));
      return {};
    }
    if (engines.value->flow)
      return "`engines` is written in {}; write each engine in lines of its "
             "own";
    return edit_engines(*engines.value);
  }

  std::string text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + '\n';
    return text;
  }

 private:
  std::size_t line_of(std::size_t offset) const {
    return static_cast<std::size_t>(source_.line_number(offset)) - 1;
  }
  std::size_t column_of(const YamlNode& node) const {
    return static_cast<std::size_t>(source_.location(node.offset).column) - 1;
  }
  // Index of the line behind the node.
  std::size_t behind(const YamlNode& node) const {
    return line_of(last_place(node, source_.text())) + 1;
  }

  void insert(std::size_t at, const Lines& more) {
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at),
                  more.begin(), more.end());
  }

  Lines tolerances_entry(std::size_t indent) const {
    Lines lines = tolerance_lines(heading_, by_check_, indent + 2);
    lines.insert(lines.begin(), std::string(indent, ' ') + "tolerances:");
    return lines;
  }

  Lines entry_lines(std::size_t indent) const {
    Lines lines = tolerances_entry(indent + 2);
    lines.insert(lines.begin(),
                 std::string(indent, ' ') + quoted_yaml(engine_) + ':');
    return lines;
  }

  void add_engines() {
    lines_.push_back("");
    lines_.push_back("engines:");
    insert(lines_.size(), entry_lines(2));
    const Entry version = find_key(root_, "version");
    if (find_key(root_, "extends").key == nullptr && version.key != nullptr)
      insert(behind(*version.value), {"extends: built-in"});
  }

  // Takes the `{}` out of its line, and returns the index of the next one.
  std::size_t drop_empty(const YamlNode& node) {
    const std::size_t line = line_of(node.offset);
    std::string& text = lines_[line];
    const std::size_t open = text.find('{', source_byte_column(node));
    const std::size_t close = text.find('}', open);
    if (close != std::string::npos) text.erase(open, close - open + 1);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return line + 1;
  }

  std::size_t source_byte_column(const YamlNode& node) const {
    const std::string_view text = source_.text();
    const std::size_t start = text.rfind('\n', node.offset);
    return start == std::string_view::npos ? node.offset
                                           : node.offset - start - 1;
  }

  std::string edit_engines(const YamlNode& engines) {
    const Entry own = find_key(engines, engine_);
    if (own.key == nullptr) {
      insert(behind(engines), entry_lines(column_of(engines.children.front())));
      return {};
    }
    const std::size_t indent = column_of(*own.key);
    if (own.value->children.empty()) {
      insert(drop_empty(*own.value), tolerances_entry(indent + 2));
      return {};
    }
    if (own.value->flow)
      return "the entry of '" + engine_ +
             "' is written in {}; write its keys in lines";
    const std::size_t inner = column_of(own.value->children.front());
    const Entry old = find_key(*own.value, "tolerances");
    if (old.key == nullptr) {
      insert(behind(*own.value), tolerances_entry(inner));
      return {};
    }
    const auto first = static_cast<std::ptrdiff_t>(line_of(old.key->offset));
    const auto last = static_cast<std::ptrdiff_t>(behind(*old.value));
    lines_.erase(lines_.begin() + first, lines_.begin() + last);
    insert(static_cast<std::size_t>(first), tolerances_entry(inner));
    return {};
  }

  const SourceText& source_;
  const YamlNode& root_;
  const std::string& engine_;
  std::span<const std::string> heading_;
  std::map<std::string, ByDtype> by_check_;
  Lines lines_;
};

// What the entry has already, and what is new over it.
std::map<std::string, ByDtype> all_of(const Policy& policy,
                                      std::string_view name,
                                      const std::string& engine,
                                      std::span<const NewTolerance> more) {
  std::map<std::string, ByDtype> all;
  for (const SettingsPatch& patch : policy.patches) {
    if (patch.engine_glob != engine || patch.location.file != name) continue;
    for (const auto& [check, by_dtype] : patch.tolerances)
      for (const auto& [dtype, tolerance] : by_dtype)
        all[check][dtype] = {check, dtype, tolerance};
  }
  for (const NewTolerance& one : more) all[one.check][one.dtype] = one;
  return all;
}

Status refuse(std::string_view name, const std::string& why) {
  return invalid_argument(std::string(name) + ": " + why);
}

// What the edited text must mean.
Policy expected(Policy policy, const std::string& engine,
                std::span<const NewTolerance> tolerances) {
  SettingsPatch patch;
  patch.engine_glob = engine;
  for (const NewTolerance& one : tolerances)
    patch.tolerances[one.check][one.dtype] = one.tolerance;
  policy.patches.push_back(std::move(patch));
  return policy;
}

}  // namespace

Result<std::string> edit_tolerances(
    std::string_view text, std::string_view name, const std::string& engine,
    std::span<const std::string> heading,
    std::span<const NewTolerance> tolerances,
    std::span<const std::string_view> check_ids) {
  const PolicyParse before = parse_policy(text, name, check_ids);
  if (!before.policy)
    return invalid_argument(format_diagnostics(before.diagnostics));
  const SourceText source(text, name);
  DiagnosticSink sink(source);
  const std::optional<YamlNode> root = read_yaml(source, sink);
  Editor editor(source, *root, engine, heading,
                all_of(*before.policy, name, engine, tolerances));
  if (const std::string why = editor.edit(); !why.empty())
    return refuse(name, why);
  const PolicyParse after = parse_policy(editor.text(), name, check_ids);
  if (!after.policy)
    return refuse(name,
                  "the tolerances do not fit in; write `engines` in lines of "
                  "its own:\n" +
                      format_diagnostics(after.diagnostics));
  const std::string difference = diff_policies(
      expected(*before.policy, engine, tolerances), *after.policy, check_ids);
  if (!difference.empty())
    return refuse(name, "a later pattern below `engines` overrides those of '" +
                            engine + "'; move that entry to the end:\n" +
                            difference);
  return editor.text();
}

}  // namespace attnguard
