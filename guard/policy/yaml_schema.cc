#include "guard/policy/yaml_schema.h"

#include <algorithm>
#include <map>

#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr std::array kKeys = {
    PolicyKeyInfo{PolicyKey::kVersion, "version", KeyPlace::kTop,
                  "The version of this format: 1. Required."},
    PolicyKeyInfo{PolicyKey::kExtends, "extends", KeyPlace::kTop,
                  "Another policy, relative to this file, or 'built-in'. What "
                  "this file sets wins over it; engines and suppressions are "
                  "added to its own."},
    PolicyKeyInfo{PolicyKey::kSeed, "seed", KeyPlace::kTop,
                  "Every random choice follows from it."},
    PolicyKeyInfo{PolicyKey::kCoverage, "coverage", KeyPlace::kTopAndEngine,
                  "How many cuts and rows each problem gets."},
    PolicyKeyInfo{PolicyKey::kChecks, "checks", KeyPlace::kTopAndEngine,
                  "What a violation of each check is. \"*\" is every check; a "
                  "check's own line wins over it."},
    PolicyKeyInfo{
        PolicyKey::kTolerances, "tolerances", KeyPlace::kTopAndEngine,
        "How much may differ, by check: for all dtypes, or by dtype."},
    PolicyKeyInfo{PolicyKey::kProblems, "problems", KeyPlace::kTop,
                  "What to run. Lists expand as a product. Replaces the "
                  "problems of the extended or built-in policy."},
    PolicyKeyInfo{PolicyKey::kExtraProblems, "extra_problems", KeyPlace::kTop,
                  "Problems that are added to those of the extended or "
                  "built-in policy, or to this file's own."},
    PolicyKeyInfo{PolicyKey::kEngines, "engines", KeyPlace::kTop,
                  "Overrides for engines whose name matches a pattern such as "
                  "\"ggml:*\"; later ones win."},
    PolicyKeyInfo{PolicyKey::kSuppressions, "suppressions", KeyPlace::kTop,
                  "Findings that are accepted for now: they are listed and do "
                  "not fail the run."},
    PolicyKeyInfo{PolicyKey::kRuntime, "runtime", KeyPlace::kTop,
                  "The live guard: how often it looks, at what, and what "
                  "happens on a violation."},
};

constexpr std::array kSuppressionKeys = {
    SuppressionKeyInfo{"check", true, &Suppression::check,
                       "Check id or pattern."},
    SuppressionKeyInfo{"engine", false, &Suppression::engine,
                       "Pattern of engine names; left out: every engine."},
    SuppressionKeyInfo{"problem", false, &Suppression::problem,
                       "Pattern of problem lines; left out: every problem."},
    SuppressionKeyInfo{"kind", false, &Suppression::kind,
                       "Only findings of this kind; left out: every kind."},
    SuppressionKeyInfo{"reason", true, &Suppression::reason,
                       "Why they are accepted; reports show it."},
    SuppressionKeyInfo{"expires", false, nullptr,
                       "The last day, UTC, on which it holds: YYYY-MM-DD. "
                       "After it the run fails."},
};

constexpr std::size_t kLongestName = 60;  // code points of a name

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

std::span<const PolicyKeyInfo> policy_keys() { return kKeys; }

const PolicyKeyInfo* find_policy_key(std::string_view name) {
  const auto found = std::ranges::find(kKeys, name, &PolicyKeyInfo::name);
  return found == kKeys.end() ? nullptr : found;
}

std::vector<std::string_view> policy_key_names(bool in_engine) {
  std::vector<std::string_view> names;
  for (const PolicyKeyInfo& info : kKeys)
    if (!in_engine || info.place == KeyPlace::kTopAndEngine)
      names.push_back(info.name);
  return names;
}

std::span<const SuppressionKeyInfo> suppression_keys() {
  return kSuppressionKeys;
}

bool is_map(const YamlNode& node, std::string_view what, std::string_view of,
            DiagnosticSink& sink) {
  if (node.kind == YamlNode::Kind::kMap) return true;
  if (node.kind != YamlNode::Kind::kRefused)
    sink.error(node.offset, std::string(what) + ": expected a map of " +
                                std::string(of) + ", got " + describe(node));
  return false;
}

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
                 visible_text(entry.name, kLongestName) + "'" +
                 suggestion(entry.name.substr(0, kLongestName), known));
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
