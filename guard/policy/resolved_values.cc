#include "guard/policy/resolved_values.h"

#include "guard/base/text.h"
#include "guard/policy/policy_text.h"

namespace attnguard {
namespace {

// Where the winning patch has the value.
SourceLocation place_of(const Policy& policy, std::string_view engine,
                        const std::string& path) {
  SourceLocation place;
  for (const SettingsPatch& patch : policy.patches) {
    if (!glob_match(patch.engine_glob, engine)) continue;
    const auto found = patch.places.find(path);
    if (found != patch.places.end()) place = found->second;
  }
  return place;
}

}  // namespace

std::string ResolvedValue::path() const {
  return key + (check.empty() ? "" : '.' + check) +
         (dtype.empty() ? "" : '.' + dtype);
}

std::vector<ResolvedValue> resolved_values(
    const Policy& policy, std::string_view engine,
    std::span<const std::string_view> check_ids) {
  const Settings settings = policy.resolve(engine);
  std::vector<ResolvedValue> values;
  const auto add = [&](std::string key, std::string_view check,
                       std::string_view dtype, std::string_view value) {
    ResolvedValue& one = values.emplace_back();
    one.key = std::move(key);
    one.check = check;
    one.dtype = dtype;
    one.value = value;
    one.place = one.key == "seed" ? policy.seed_location
                                  : place_of(policy, engine, one.path());
  };
  add("seed", "", "", std::to_string(settings.seed));
  add("coverage", "", "", coverage_name(settings.coverage));
  for (std::string_view id : check_ids)
    add("checks", id, "",
        severity_name(settings.check(std::string(id)).severity));
  for (std::string_view id : check_ids)
    for (const DtypeInfo& info : all_dtypes())
      add("tolerances", id, info.name,
          tolerance_text(
              settings.check(std::string(id)).tolerance(info.dtype)));
  return values;
}

}  // namespace attnguard
