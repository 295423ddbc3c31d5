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

namespace {

bool fits(bool literal, std::string_view pattern, std::string_view text) {
  return literal ? pattern == text : glob_match(pattern, text);
}

}  // namespace

bool Suppression::fits_engine(std::string_view name) const {
  return fits(baseline, engine, name);
}

bool Suppression::fits_problem(std::string_view line) const {
  return fits(baseline, problem, line);
}

bool Suppression::fits_check(std::string_view id) const {
  return fits(baseline, check, id);
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
  for (const Suppression& suppression : suppressions)
    if (suppression.fits_engine(engine_name))
      settings.suppressions.push_back(suppression);
  return settings;
}

}  // namespace attnguard
