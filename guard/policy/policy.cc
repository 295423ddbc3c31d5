#include "guard/policy/policy.h"

#include "guard/base/text.h"

namespace attnguard {

std::string_view coverage_name(Coverage coverage) {
  switch (coverage) {
    case Coverage::kSampled:
      return "sampled";
    case Coverage::kEdges:
      return "edges";
    case Coverage::kFull:
      break;
  }
  return "full";
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kOff:
      break;
  }
  return "off";
}

const CheckSettings& Settings::check(const std::string& id) const {
  static const CheckSettings kDefaults;
  const auto found = checks.find(id);
  return found == checks.end() ? kDefaults : found->second;
}

Settings Policy::resolve(std::string_view engine_name) const {
  Settings settings;
  settings.seed = seed;
  if (name != Policy().name) settings.policy_file = name;
  for (const SettingsPatch& patch : patches) {
    if (!glob_match(patch.engine_glob, engine_name)) continue;
    if (patch.coverage) settings.coverage = *patch.coverage;
    for (const auto& [id, severity] : patch.severities)
      settings.checks[id].severity = severity;
    for (const auto& [id, by_dtype] : patch.tolerances)
      for (const auto& [dtype, tolerance] : by_dtype)
        settings.checks[id].tolerances[dtype] = tolerance;
  }
  return settings;
}

}  // namespace attnguard
