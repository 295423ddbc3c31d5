// What every map and scalar of a policy has in common: keys are known names,
// each at most once; numbers are plain decimals without quotes.
#ifndef ATTNGUARD_GUARD_POLICY_YAML_SCHEMA_H_
#define ATTNGUARD_GUARD_POLICY_YAML_SCHEMA_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

struct YamlEntry {
  std::string_view name;
  const YamlNode& key;
  const YamlNode& value;
};

// The entries of a map whose keys are good. The rest is reported: keys that
// are no names or are given twice, and keys without a value.
std::vector<YamlEntry> checked_entries(const YamlNode& map,
                                       DiagnosticSink& sink);

// Reports a name that is not one of `known`: "unknown `what` 'name'", with
// the nearest known one.
bool known_name(const YamlEntry& entry, std::string_view what,
                std::span<const std::string_view> known, DiagnosticSink& sink);

// Empty, or why this text is no plain decimal: in quotes, or with leading
// zeros, which readers of YAML disagree about.
std::string number_style_error(const YamlNode& scalar);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_YAML_SCHEMA_H_
