#include "guard/policy/policy_reader.h"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard/base/text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/problem_grid.h"
#include "guard/policy/runtime_reader.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kEveryCheck = "*";

constexpr std::array<std::string_view, 8> kTopKeys = {
    "version",    "seed",     "coverage", "checks",
    "tolerances", "problems", "engines",  "runtime"};
constexpr std::array<std::string_view, 3> kEngineKeys = {"coverage", "checks",
                                                         "tolerances"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  for (std::string_view known : names)
    if (known == name) return true;
  return false;
}

// Digits only, as YAML readers agree on; the whole unsigned range.
std::optional<std::uint64_t> parse_seed(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// 'version:1' is one word to YAML.
std::string_view blank_hint(const YamlNode& node) {
  const bool joined = node.text.find(':') != std::string::npos;
  return joined ? "; a blank follows each ':'" : "";
}

class PolicyReader {
 public:
  PolicyReader(const SourceText& source,
               std::span<const std::string_view> check_ids,
               DiagnosticSink& sink)
      : source_(source), check_ids_(check_ids), sink_(sink) {
    known_checks_.assign(check_ids.begin(), check_ids.end());
    known_checks_.push_back(kEveryCheck);
  }

  Policy read(const YamlNode& root) {
    policy_.name = source_.name();
    if (root.kind == YamlNode::Kind::kRefused) return std::move(policy_);
    if (root.kind == YamlNode::Kind::kNull) {
      sink_.error(0, "the policy is empty; begin with 'version: 1'");
    } else if (root.kind != YamlNode::Kind::kMap) {
      sink_.error(root.offset,
                  "a policy is a map of keys that begins with 'version: 1', "
                  "got " +
                      describe(root) + std::string(blank_hint(root)));
    } else if (read_version(root)) {
      read_top_level(root);
    }
    return std::move(policy_);
  }

 private:
  // False when nothing else in the file can be judged.
  bool read_version(const YamlNode& root) {
    const YamlNode* value = nullptr;
    for (std::size_t i = 0; i + 1 < root.children.size() && !value; i += 2)
      if (root.children[i].text == "version") value = &root.children[i + 1];
    if (value == nullptr) {
      sink_.error(0, "the key 'version' is missing; add 'version: 1'");
      return true;
    }
    if (value->kind == YamlNode::Kind::kRefused ||
        value->kind == YamlNode::Kind::kNull)
      return true;  // Reported with its key.
    const bool plain = value->kind == YamlNode::Kind::kScalar && !value->quoted;
    if (plain && parse_int(value->text) == kVersion && value->text == "1")
      return true;
    const bool newer =
        plain && is_digits(value->text) && value->text.front() != '0';
    if (newer)
      sink_.error(value->offset,
                  "version " + visible_text(value->text, 20) +
                      " is newer than the version 1 that this attnguard "
                      "reads; use a newer attnguard or write 'version: 1'");
    else
      sink_.error(value->offset, "version: expected the number 1, got " +
                                     describe(*value) +
                                     (value->quoted ? " in quotes" : ""));
    return !newer;
  }

  void read_top_level(const YamlNode& root) {
    SettingsPatch top;
    top.location = source_.location(root.offset);
    const YamlNode* engines = nullptr;
    bool own_problems = false;
    for (const YamlEntry& entry : checked_entries(root, sink_)) {
      if (!known_name(entry, "key", kTopKeys, sink_)) continue;
      if (entry.name == "seed") read_seed(entry.value);
      if (entry.name == "engines") engines = &entry.value;
      if (entry.name == "problems") {
        policy_.problems = expand_problems(entry.value, source_, sink_);
        own_problems = true;
      }
      if (entry.name == "runtime")
        policy_.runtime = read_runtime(entry.value, source_, sink_);
      read_setting(entry, top);
    }
    policy_.patches.push_back(std::move(top));
    if (engines != nullptr) read_engines(*engines);
    if (!own_problems || engines == nullptr)
      use_built_in(!own_problems, engines == nullptr);
  }

  // Takes from the built-in policy what the file leaves out.
  void use_built_in(bool problems, bool engines) {
    const SourceText text(default_policy_text(), "built-in");
    // A check that is not among check_ids_ is none that could be overridden.
    DiagnosticSink ignored(text);
    const std::optional<YamlNode> root = read_yaml(text, ignored);
    if (!root) return;
    PolicyReader built_in(text, check_ids_, ignored);
    for (const YamlEntry& entry : checked_entries(*root, ignored)) {
      if (problems && entry.name == "problems")
        policy_.problems = expand_problems(entry.value, text, ignored);
      if (engines && entry.name == "engines")
        built_in.read_engines(entry.value);
    }
    for (SettingsPatch& patch : built_in.policy_.patches)
      if (patch.coverage || !patch.severities.empty() ||
          !patch.tolerances.empty())
        policy_.patches.push_back(std::move(patch));
  }

  void read_seed(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kRefused) return;
    std::string problem;
    if (node.kind == YamlNode::Kind::kScalar) {
      problem = number_style_error(node);
      const auto seed = parse_seed(node.text);
      if (problem.empty() && seed) {
        policy_.seed = *seed;
        return;
      }
    }
    if (problem.empty())
      problem = "expected a whole number from 0 to 18446744073709551615, got " +
                describe(node);
    sink_.error(node.offset, "seed: " + problem);
  }

  void read_engines(const YamlNode& node) {
    if (!is_map(node, "engines",
                "engine name patterns such as '\"ggml:*\"' and their keys"))
      return;
    for (const YamlEntry& engine : checked_entries(node, sink_)) {
      if (!is_map(engine.value, "engine " + describe(engine.key),
                  "coverage, checks or tolerances"))
        continue;
      SettingsPatch patch;
      patch.engine_glob = engine.name;
      patch.location = source_.location(engine.key.offset);
      for (const YamlEntry& entry : checked_entries(engine.value, sink_)) {
        if (contains(kTopKeys, entry.name) &&
            !contains(kEngineKeys, entry.name)) {
          sink_.error(entry.key.offset,
                      "'" + std::string(entry.name) +
                          "' cannot differ by engine; move it to the top "
                          "level");
          continue;
        }
        if (known_name(entry, "key", kEngineKeys, sink_))
          read_setting(entry, patch);
      }
      policy_.patches.push_back(std::move(patch));
    }
  }

  // The keys that the top level and an engine have in common.
  void read_setting(const YamlEntry& entry, SettingsPatch& patch) {
    if (entry.name == "coverage")
      patch.coverage =
          read_name(entry.value, "coverage", "coverage",
                    {Coverage::kSampled, Coverage::kEdges, Coverage::kFull},
                    coverage_name);
    if (entry.name == "checks") read_checks(entry.value, patch);
    if (entry.name == "tolerances") read_tolerances(entry.value, patch);
  }

  // One of the values that `name_of` names.
  template <typename Enum>
  std::optional<Enum> read_name(const YamlNode& node, std::string_view place,
                                std::string_view what,
                                std::initializer_list<Enum> values,
                                std::string_view (*name_of)(Enum)) {
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

  // The check entries of a map, those of "*" first: a check's own entry wins
  // wherever it stands.
  std::vector<YamlEntry> check_entries(const YamlNode& node) {
    std::vector<YamlEntry> every, own;
    for (const YamlEntry& entry : checked_entries(node, sink_))
      if (known_name(entry, "check", known_checks_, sink_))
        (entry.name == kEveryCheck ? every : own).push_back(entry);
    for (const YamlEntry& entry : own) every.push_back(entry);
    return every;
  }

  std::vector<std::string> ids_of(std::string_view key) const {
    if (key != kEveryCheck) return {std::string(key)};
    return {check_ids_.begin(), check_ids_.end()};
  }

  void read_checks(const YamlNode& node, SettingsPatch& patch) {
    if (!is_map(node, "checks", "check ids and severities")) return;
    for (const YamlEntry& entry : check_entries(node)) {
      const auto severity =
          read_name(entry.value, entry.name, "severity",
                    {Severity::kError, Severity::kWarning, Severity::kOff},
                    severity_name);
      if (!severity) continue;
      for (const std::string& id : ids_of(entry.name))
        patch.severities[id] = *severity;
    }
  }

  void read_tolerances(const YamlNode& node, SettingsPatch& patch) {
    if (!is_map(node, "tolerances", "check ids and tolerances")) return;
    std::vector<std::string_view> dtypes;
    for (const DtypeInfo& info : all_dtypes()) dtypes.push_back(info.name);
    for (const YamlEntry& entry : check_entries(node)) {
      std::map<Dtype, Tolerance> by_dtype;
      if (entry.value.kind == YamlNode::Kind::kMap) {
        for (const YamlEntry& one : checked_entries(entry.value, sink_)) {
          if (!known_name(one, "dtype", dtypes, sink_)) continue;
          if (const auto tolerance = read_tolerance(one.value, entry.name))
            by_dtype[*parse_dtype(one.name)] = *tolerance;
        }
      } else if (const auto tolerance =
                     read_tolerance(entry.value, entry.name)) {
        for (const DtypeInfo& info : all_dtypes())
          by_dtype[info.dtype] = *tolerance;
      }
      for (const std::string& id : ids_of(entry.name))
        for (const auto& [dtype, tolerance] : by_dtype)
          patch.tolerances[id][dtype] = tolerance;
    }
  }

  std::optional<Tolerance> read_tolerance(const YamlNode& node,
                                          std::string_view check) {
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

  static std::string tolerance_error(const YamlNode& node) {
    constexpr std::array<std::string_view, 2> kWords = {"exact", "auto"};
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
        nearest_name(std::string_view(node.text).substr(0, 60), kWords);
    return "expected exact, auto or a number, got " + describe(node) +
           (nearest.empty() || node.text.find_first_of("0123456789") == 0
                ? ""
                : "; did you mean '" + std::string(nearest) + "'?");
  }

  static bool is_any_case(std::string_view text,
                          std::span<const std::string_view> names) {
    std::string lower(text);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return contains(names, lower);
  }

  bool is_map(const YamlNode& node, const std::string& what,
              std::string_view of) {
    if (node.kind == YamlNode::Kind::kMap) return true;
    if (node.kind != YamlNode::Kind::kRefused)
      sink_.error(node.offset, what + ": expected a map of " + std::string(of) +
                                   ", got " + describe(node));
    return false;
  }

  const SourceText& source_;
  std::span<const std::string_view> check_ids_;
  std::vector<std::string_view> known_checks_;
  DiagnosticSink& sink_;
  Policy policy_;
};

}  // namespace

Policy read_policy(const YamlNode& root, const SourceText& source,
                   std::span<const std::string_view> check_ids,
                   DiagnosticSink& sink) {
  return PolicyReader(source, check_ids, sink).read(root);
}

}  // namespace attnguard
