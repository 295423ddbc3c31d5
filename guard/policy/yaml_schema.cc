#include "guard/policy/yaml_schema.h"

#include <algorithm>
#include <map>

#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr std::size_t kLongestShown = 60;  // code points of a name

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 010 is eight in YAML 1.1 and ten in 1.2.
bool has_leading_zero(std::string_view number) {
  if (number.starts_with('-') || number.starts_with('+'))
    number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0' && is_digit(number[1]);
}

bool is_list_of_numbers(const std::vector<std::string_view>& pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [](std::string_view piece) {
    return parse_double(piece).has_value();
  });
}

}  // namespace

std::vector<YamlEntry> checked_entries(const YamlNode& map,
                                       DiagnosticSink& sink) {
  std::vector<YamlEntry> entries;
  std::map<std::string_view, const YamlNode*> first_of;
  for (std::size_t i = 0; i + 1 < map.children.size(); i += 2) {
    const YamlNode& key = map.children[i];
    const YamlNode& value = map.children[i + 1];
    if (key.kind == YamlNode::Kind::kRefused) continue;
    if (key.kind != YamlNode::Kind::kScalar || key.text.empty()) {
      const bool blank = key.kind == YamlNode::Kind::kScalar;
      sink.error(key.offset, "a key must be a name, got " +
                                 (blank ? "an empty text" : describe(key)));
      continue;
    }
    const auto [first, added] = first_of.emplace(key.text, &key);
    if (!added) {
      sink.error(key.offset, "duplicate key " + describe(key) +
                                 "; it is first given at " + "line " +
                                 sink.line_of(first->second->offset) +
                                 ": keep one");
      continue;
    }
    if (value.kind == YamlNode::Kind::kNull) {
      sink.error(key.offset,
                 "the key " + describe(key) +
                     " has no value; write 'key: value' or remove it");
      continue;
    }
    entries.push_back({key.text, key, value});
  }
  return entries;
}

bool known_name(const YamlEntry& entry, std::string_view what,
                std::span<const std::string_view> known, DiagnosticSink& sink) {
  if (std::find(known.begin(), known.end(), entry.name) != known.end())
    return true;
  sink.error(entry.key.offset,
             "unknown " + std::string(what) + " '" +
                 visible_text(entry.name, kLongestShown) + "'" +
                 suggestion(entry.name.substr(0, kLongestShown), known));
  return false;
}

std::string number_style_error(const YamlNode& scalar) {
  const auto pieces = split(scalar.text, ',');
  if (!is_list_of_numbers(pieces)) return {};
  if (scalar.quoted && pieces.size() == 1)
    return "the number " + describe(scalar) + " is in quotes; remove them";
  for (std::string_view piece : pieces)
    if (has_leading_zero(piece))
      return "the number " + describe(scalar) +
             " has a leading zero; remove it";
  return {};
}

}  // namespace attnguard
