// The policy as canonical YAML. Problems are grouped back into products, so
// what is printed is about as long as what was written.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "guard/policy/policy_reader.h"
#include "guard/policy/policy_text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/runtime_reader.h"

namespace attnguard {
namespace {

std::string tolerances_text(const std::map<Dtype, Tolerance>& by_dtype) {
  const auto& first = by_dtype.begin()->second;
  const bool same =
      by_dtype.size() == all_dtypes().size() &&
      std::all_of(by_dtype.begin(), by_dtype.end(),
                  [&](const auto& item) { return item.second == first; });
  if (same) return tolerance_text(first);
  std::string out;
  for (const auto& [dtype, tolerance] : by_dtype)
    out += (out.empty() ? "{" : ", ") + std::string(dtype_name(dtype)) + ": " +
           tolerance_text(tolerance);
  return out + '}';
}

std::string settings_text(const SettingsPatch& patch,
                          const std::string& indent) {
  std::string out;
  if (patch.coverage)
    out += indent + "coverage: " + std::string(coverage_name(*patch.coverage)) +
           '\n';
  if (!patch.severities.empty()) out += indent + "checks:\n";
  for (const auto& [id, severity] : patch.severities)
    out +=
        indent + "  " + id + ": " + std::string(severity_name(severity)) + '\n';
  std::string tolerances;
  for (const auto& [id, by_dtype] : patch.tolerances)
    if (!by_dtype.empty())
      tolerances +=
          indent + "  " + id + ": " + tolerances_text(by_dtype) + '\n';
  if (!tolerances.empty()) out += indent + "tolerances:\n" + tolerances;
  return out;
}

// A key can stand only once: patches of one glob become one, at the place of
// the last.
std::vector<SettingsPatch> distinct_globs(std::vector<SettingsPatch> patches) {
  std::vector<SettingsPatch> distinct;
  for (SettingsPatch& patch : patches) {
    const auto same = std::find_if(
        distinct.begin(), distinct.end(), [&](const SettingsPatch& other) {
          return other.engine_glob == patch.engine_glob;
        });
    if (same != distinct.end()) {
      SettingsPatch combined = std::move(*same);
      distinct.erase(same);
      override_with(combined, patch);
      patch = std::move(combined);
    }
    distinct.push_back(std::move(patch));
  }
  return distinct;
}

}  // namespace

std::string print_policy(const Policy& policy) {
  std::string out = "version: 1\nseed: " + std::to_string(policy.seed) + '\n';
  std::vector<SettingsPatch> patches = policy.patches;
  if (!patches.empty() && patches.front().engine_glob == "*") {
    out += settings_text(patches.front(), "");
    patches.erase(patches.begin());
  }
  if (!policy.problems.empty())
    out += "problems:\n" + problem_entries_text(policy.problems);
  std::string engines;
  for (const SettingsPatch& patch : distinct_globs(std::move(patches))) {
    const std::string settings = settings_text(patch, "    ");
    engines += "  " + quoted_yaml(patch.engine_glob) + ':' +
               (settings.empty() ? " {}\n" : '\n' + settings);
  }
  // Left out would mean the built-in overrides.
  out += engines.empty() ? "engines: {}\n" : "engines:\n" + engines;
  std::string suppressions;
  for (const Suppression& one : policy.suppressions)
    if (!one.baseline) suppressions += suppression_entry_text(one);
  if (!suppressions.empty()) out += "suppressions:\n" + suppressions;
  return policy.runtime ? out + print_runtime(*policy.runtime) : out;
}

}  // namespace attnguard
