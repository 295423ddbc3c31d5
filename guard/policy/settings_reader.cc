#include "guard/policy/settings_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "guard/base/text.h"

namespace attnguard {
namespace {

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_any_case(std::string_view text,
                 std::span<const std::string_view> names) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return contains(names, lower);
}

// Empty for a number that may be a tolerance.
std::string tolerance_error(const YamlNode& node) {
  static constexpr std::array<std::string_view, 5> kNotFinite = {
      ".nan", ".inf", "-.inf", "+.inf", "nan"};
  if (std::string style = number_style_error(node); !style.empty())
    return style;
  const auto value = parse_double(node.text);
  if ((value && !std::isfinite(*value)) || is_any_case(node.text, kNotFinite))
    return "a tolerance must be finite, got " + describe(node) +
           "; write a number, auto or exact";
  if (value && *value < 0)
    return "a tolerance must not be negative, got " + describe(node);
  if (value) return {};
  if (node.text.find_first_not_of("0123456789.eE+-") == std::string::npos)
    return describe(node) +
           " is not a decimal number that a double can hold, such as 2.0e-3";
  const std::string_view nearest =
      nearest_name(std::string_view(node.text).substr(0, 60), kToleranceWords);
  return "expected exact, auto or a number, got " + describe(node) +
         (nearest.empty() || node.text.find_first_of("0123456789") == 0
              ? ""
              : "; did you mean '" + std::string(nearest) + "'?");
}

std::string tolerance_path(std::string_view id, Dtype dtype) {
  return "tolerances." + std::string(id) + '.' + std::string(dtype_name(dtype));
}

}  // namespace

SettingsReader::SettingsReader(const SourceText& source,
                               std::span<const std::string_view> check_ids,
                               DiagnosticSink& sink)
    : source_(source),
      check_ids_(check_ids),
      known_checks_(check_ids.begin(), check_ids.end()),
      sink_(sink) {
  known_checks_.push_back(kEveryCheck);
}

void SettingsReader::read(const YamlEntry& entry, SettingsPatch& patch) {
  const PolicyKeyInfo* info = find_policy_key(entry.name);
  if (info == nullptr) return;
  if (info->key == PolicyKey::kCoverage) read_coverage(entry.value, patch);
  if (info->key == PolicyKey::kChecks) read_checks(entry.value, patch);
  if (info->key == PolicyKey::kTolerances) read_tolerances(entry.value, patch);
}

std::vector<SettingsPatch> SettingsReader::read_engines(const YamlNode& node) {
  std::vector<SettingsPatch> patches;
  if (!is_map(node, "engines",
              "engine name patterns such as '\"ggml:*\"' and their keys",
              sink_))
    return patches;
  for (const YamlEntry& engine : checked_entries(node, sink_)) {
    if (!is_map(engine.value, "engine " + describe(engine.key),
                "coverage, checks or tolerances", sink_))
      continue;
    SettingsPatch& patch = patches.emplace_back();
    patch.engine_glob = engine.name;
    patch.location = source_.location(engine.key.offset);
    read_engine(engine, patch);
  }
  return patches;
}

void SettingsReader::read_engine(const YamlEntry& engine,
                                 SettingsPatch& patch) {
  const std::vector<std::string_view> known = policy_key_names(true);
  for (const YamlEntry& entry : checked_entries(engine.value, sink_)) {
    const PolicyKeyInfo* info = find_policy_key(entry.name);
    if (info != nullptr && info->place == KeyPlace::kTop)
      sink_.error(entry.key.offset, "'" + std::string(entry.name) +
                                        "' cannot differ by engine; move it to "
                                        "the top level");
    else if (known_name(entry, "key", known, sink_))
      read(entry, patch);
  }
}

// One of the values that `name_of` names.
template <typename Enum>
std::optional<Enum> SettingsReader::read_name(
    const YamlNode& node, std::string_view place, std::string_view what,
    std::span<const Enum> values, std::string_view (*name_of)(Enum)) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  std::vector<std::string_view> names;
  for (Enum value : values) {
    names.push_back(name_of(value));
    if (node.kind == YamlNode::Kind::kScalar && node.text == names.back())
      return value;
  }
  if (node.kind == YamlNode::Kind::kScalar)
    sink_.error(
        node.offset,
        std::string(place) + ": unknown " + std::string(what) + " " +
            describe(node) +
            suggestion(std::string_view(node.text).substr(0, 60), names));
  else
    sink_.error(node.offset, std::string(place) + ": expected one " +
                                 std::string(what) + suggestion("", names) +
                                 ", got " + describe(node));
  return std::nullopt;
}

void SettingsReader::read_coverage(const YamlNode& node, SettingsPatch& patch) {
  patch.coverage = read_name<Coverage>(node, "coverage", "coverage",
                                       kAllCoverages, coverage_name);
  patch.places["coverage"] = source_.location(node.offset);
}

// The check entries of a map, those of "*" first: a check's own entry wins
// wherever it stands.
std::vector<YamlEntry> SettingsReader::check_entries(const YamlNode& node) {
  std::vector<YamlEntry> every, own;
  for (const YamlEntry& entry : checked_entries(node, sink_))
    if (known_name(entry, "check", known_checks_, sink_))
      (entry.name == kEveryCheck ? every : own).push_back(entry);
  for (const YamlEntry& entry : own) every.push_back(entry);
  return every;
}

std::vector<std::string> SettingsReader::ids_of(std::string_view key) const {
  if (key != kEveryCheck) return {std::string(key)};
  return {check_ids_.begin(), check_ids_.end()};
}

void SettingsReader::read_checks(const YamlNode& node, SettingsPatch& patch) {
  if (!is_map(node, "checks", "check ids and severities", sink_)) return;
  for (const YamlEntry& entry : check_entries(node)) {
    const auto severity = read_name<Severity>(
        entry.value, entry.name, "severity", kAllSeverities, severity_name);
    if (!severity) continue;
    for (const std::string& id : ids_of(entry.name)) {
      patch.severities[id] = *severity;
      patch.places["checks." + id] = source_.location(entry.value.offset);
    }
  }
}

void SettingsReader::read_tolerances(const YamlNode& node,
                                     SettingsPatch& patch) {
  if (!is_map(node, "tolerances", "check ids and tolerances", sink_)) return;
  for (const YamlEntry& entry : check_entries(node))
    read_check_tolerance(entry, patch);
}

void SettingsReader::read_check_tolerance(const YamlEntry& entry,
                                          SettingsPatch& patch) {
  if (entry.value.kind != YamlNode::Kind::kMap) {
    const auto tolerance = read_tolerance(entry.value, entry.name);
    if (!tolerance) return;
    for (const DtypeInfo& info : all_dtypes())
      set_tolerance(entry, entry.value, *tolerance, info.dtype, patch);
    return;
  }
  std::vector<std::string_view> dtypes;
  for (const DtypeInfo& info : all_dtypes()) dtypes.push_back(info.name);
  for (const YamlEntry& one : checked_entries(entry.value, sink_)) {
    if (!known_name(one, "dtype", dtypes, sink_)) continue;
    if (const auto tolerance = read_tolerance(one.value, entry.name))
      set_tolerance(entry, one.value, *tolerance, *parse_dtype(one.name),
                    patch);
  }
}

void SettingsReader::set_tolerance(const YamlEntry& entry,
                                   const YamlNode& value,
                                   const Tolerance& tolerance, Dtype dtype,
                                   SettingsPatch& patch) {
  for (const std::string& id : ids_of(entry.name)) {
    patch.tolerances[id][dtype] = tolerance;
    patch.places[tolerance_path(id, dtype)] = source_.location(value.offset);
  }
}

std::optional<Tolerance> SettingsReader::read_tolerance(
    const YamlNode& node, std::string_view check) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  std::string problem;
  if (node.kind == YamlNode::Kind::kScalar) {
    if (node.text == "auto") return Tolerance{};
    if (node.text == "exact") return Tolerance{Tolerance::Kind::kExact, 0};
    problem = tolerance_error(node);
    if (problem.empty())
      // The sum turns -0 into 0.
      return Tolerance{Tolerance::Kind::kNumber,
                       *parse_double(node.text) + 0.0};
  } else {
    problem =
        "expected exact, auto, a number, or a map of those by dtype, got " +
        describe(node);
  }
  sink_.error(node.offset, std::string(check) + ": " + problem);
  return std::nullopt;
}

}  // namespace attnguard
