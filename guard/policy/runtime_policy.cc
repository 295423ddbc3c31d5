#include "guard/policy/runtime_policy.h"

#include <cmath>

#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr LiveCheck kChecks[] = {
    LiveCheck::kFinite,    LiveCheck::kValueRange,  LiveCheck::kSingleKey,
    LiveCheck::kRecompute, LiveCheck::kLaterTokens, LiveCheck::kOnes,
    LiveCheck::kCanary,    LiveCheck::kEngine};
static_assert(std::size(kChecks) == kNumLiveChecks);

constexpr ActionName kActions[] = {
    {kActionCount, "count"},       {kActionLog, "log"},
    {kActionCallback, "callback"}, {kActionDump, "dump"},
    {kActionThrow, "throw"},       {kActionAbort, "abort"},
    {kActionFallback, "fallback"}};

template <typename T>
void set_if(const std::optional<T>& from, T& to) {
  if (from) to = *from;
}

void apply(const RuntimePatch& patch, RuntimeSettings& settings,
           std::map<Severity, ActionSet>& by_severity,
           std::map<LiveCheck, ActionSet>& by_check) {
  set_if(patch.sample_every, settings.sample_every);
  set_if(patch.rows, settings.rows);
  set_if(patch.shadow_every, settings.shadow_every);
  set_if(patch.canary_at_start, settings.canary_at_start);
  set_if(patch.canary_on_new_shape, settings.canary_on_new_shape);
  set_if(patch.canary_interval, settings.canary_interval);
  for (const auto& [check, severity] : patch.severities)
    settings.checks[static_cast<std::size_t>(check)].severity = severity;
  for (const auto& [severity, actions] : patch.severity_actions)
    by_severity[severity] = actions;
  for (const auto& [check, actions] : patch.check_actions)
    by_check[check] = actions;
}

Status wrong(std::string_view field, const std::string& is,
             std::string_view expected) {
  return invalid_argument("runtime: " + std::string(field) + " is " + is +
                          ", expected " + std::string(expected));
}

Status validate_patch(const RuntimePatch& patch) {
  const std::string where = " of layers '" + patch.layer_glob + "'";
  const auto not_negative = [&](const std::optional<std::int64_t>& value,
                                const char* name) -> Status {
    if (!value || *value >= 0) return ok_status();
    return wrong(name + where, std::to_string(*value), "0 or more");
  };
  if (Status status = not_negative(patch.sample_every, "sample"); !status.ok())
    return status;
  if (Status status = not_negative(patch.shadow_every, "shadow_every");
      !status.ok())
    return status;
  if (patch.rows && (*patch.rows < 1 || *patch.rows > 1024))
    return wrong("rows" + where, std::to_string(*patch.rows), "1 to 1024");
  if (patch.canary_interval &&
      !(std::isfinite(*patch.canary_interval) && *patch.canary_interval >= 0))
    return wrong("canary_interval" + where,
                 format_double(*patch.canary_interval), "seconds, 0: never");
  return ok_status();
}

}  // namespace

std::string_view live_check_id(LiveCheck check) {
  switch (check) {
    case LiveCheck::kFinite:
      return "finite";
    case LiveCheck::kValueRange:
      return "value-range";
    case LiveCheck::kSingleKey:
      return "single-key";
    case LiveCheck::kRecompute:
      return "recompute";
    case LiveCheck::kLaterTokens:
      return "later-tokens";
    case LiveCheck::kOnes:
      return "ones";
    case LiveCheck::kCanary:
      return "canary";
    case LiveCheck::kEngine:
      break;
  }
  return "engine";
}

std::span<const LiveCheck> all_live_checks() { return kChecks; }

std::vector<std::string_view> live_check_ids() {
  std::vector<std::string_view> ids;
  for (LiveCheck check : kChecks) ids.push_back(live_check_id(check));
  return ids;
}

std::optional<LiveCheck> find_live_check(std::string_view id) {
  for (LiveCheck check : kChecks)
    if (live_check_id(check) == id) return check;
  return std::nullopt;
}

std::span<const ActionName> all_actions() { return kActions; }

RuntimeSettings RuntimePolicy::resolve(std::string_view layer_name) const {
  RuntimeSettings settings;
  std::map<Severity, ActionSet> by_severity;
  std::map<LiveCheck, ActionSet> by_check;
  for (const RuntimePatch& patch : patches)
    if (glob_match(patch.layer_glob, layer_name))
      apply(patch, settings, by_severity, by_check);
  for (LiveCheck check : kChecks) {
    LiveCheckSettings& own = settings.checks[static_cast<std::size_t>(check)];
    const auto severity = by_severity.find(own.severity);
    if (severity != by_severity.end()) own.actions = severity->second;
    const auto found = by_check.find(check);
    if (found != by_check.end()) own.actions = found->second;
    own.actions |= kActionCount;
  }
  return settings;
}

Status RuntimePolicy::validate() const {
  if (max_overhead && !(std::isfinite(*max_overhead) && *max_overhead >= 0 &&
                        *max_overhead <= 1))
    return wrong("max_overhead", format_double(*max_overhead),
                 "a share from 0 to 1 (0.5% is 0.005)");
  if (!(std::isfinite(window) && window >= 0.001 && window <= 86400))
    return wrong("window", format_double(window),
                 "seconds, from 0.001 to 86400");
  if (!(std::isfinite(log_per_minute) && log_per_minute >= 0))
    return wrong("log_per_minute", format_double(log_per_minute), "0 or more");
  if (dump.max_bytes < 0)
    return wrong("dump.max_bytes", std::to_string(dump.max_bytes), "0 or more");
  if (dump.max_files < 0)
    return wrong("dump.max_files", std::to_string(dump.max_files), "0 or more");
  for (const RuntimePatch& patch : patches)
    if (Status status = validate_patch(patch); !status.ok()) return status;
  return ok_status();
}

}  // namespace attnguard
