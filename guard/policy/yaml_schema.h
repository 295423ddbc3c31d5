// The schema of a policy as data: its keys and the words they take, for the
// reader, for its suggestions and for the JSON Schema that editors use.
//
// And what every map and scalar of a policy has in common: keys are known
// names, each at most once; numbers are plain decimals without quotes.
#ifndef ATTNGUARD_GUARD_POLICY_YAML_SCHEMA_H_
#define ATTNGUARD_GUARD_POLICY_YAML_SCHEMA_H_

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

enum class PolicyKey {
  kVersion,
  kExtends,
  kSeed,
  kCoverage,
  kChecks,
  kTolerances,
  kProblems,
  kExtraProblems,
  kEngines,
  kSuppressions,
  kRuntime,
};

// Where a key may stand.
enum class KeyPlace { kTop, kTopAndEngine };

struct PolicyKeyInfo {
  PolicyKey key;
  std::string_view name;
  KeyPlace place;
  std::string_view help;  // One sentence or two.
};

// Every key, in the order in which a policy is printed.
std::span<const PolicyKeyInfo> policy_keys();

// nullptr when there is no such key.
const PolicyKeyInfo* find_policy_key(std::string_view name);

// The names of the keys that may stand at the top, or below an engine.
std::vector<std::string_view> policy_key_names(bool in_engine);

// The keys of one suppression; `expires` alone is no plain text.
struct SuppressionKeyInfo {
  std::string_view name;
  bool required;
  std::string Suppression::*text;  // Where its text goes; nullptr: a day.
  std::string_view help;
};

std::span<const SuppressionKeyInfo> suppression_keys();

inline constexpr std::array kAllCoverages = {Coverage::kSampled,
                                             Coverage::kEdges, Coverage::kFull};
inline constexpr std::array kAllSeverities = {
    Severity::kError, Severity::kWarning, Severity::kOff};
inline constexpr std::array<std::string_view, 2> kToleranceWords = {"exact",
                                                                    "auto"};

// "checks" and "tolerances" take it for every check.
inline constexpr std::string_view kEveryCheck = "*";

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

// Reports what is no map, as "`what`: expected a map of `of`".
bool is_map(const YamlNode& node, std::string_view what, std::string_view of,
            DiagnosticSink& sink);

// Empty, or why this text is no plain decimal: in quotes, or with leading
// zeros, which readers of YAML disagree about.
std::string number_style_error(const YamlNode& scalar);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_YAML_SCHEMA_H_
