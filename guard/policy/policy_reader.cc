#include "guard/policy/policy_reader.h"

#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

#include "guard/base/text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/problem_grid.h"
#include "guard/policy/runtime_reader.h"
#include "guard/policy/settings_reader.h"
#include "guard/policy/suppression_reader.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

constexpr std::int64_t kPolicyVersion = 1;

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

bool sets_something(const SettingsPatch& patch) {
  return patch.coverage || !patch.severities.empty() ||
         !patch.tolerances.empty();
}

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()),
             std::make_move_iterator(more.end()));
}

class PolicyReader {
 public:
  PolicyReader(const SourceText& source,
               std::span<const std::string_view> check_ids,
               const LoadBase& load_base, DiagnosticSink& sink)
      : source_(source),
        check_ids_(check_ids),
        load_base_(load_base),
        sink_(sink),
        settings_(source, check_ids, sink) {}

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
    if (plain && parse_int(value->text) == kPolicyVersion && value->text == "1")
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
    top_.location = source_.location(root.offset);
    const std::vector<std::string_view> known = policy_key_names(false);
    for (const YamlEntry& entry : checked_entries(root, sink_))
      if (known_name(entry, "key", known, sink_)) read_key(entry);
    Policy base = extends_ ? read_base(*extends_) : built_in();
    combine(std::move(base));
  }

  void read_key(const YamlEntry& entry) {
    const YamlNode& value = entry.value;
    switch (find_policy_key(entry.name)->key) {
      case PolicyKey::kVersion:
        return;  // Read before all others.
      case PolicyKey::kExtends:
        extends_ = &value;
        return;
      case PolicyKey::kSeed:
        read_seed(value);
        return;
      case PolicyKey::kProblems:
        problems_ = expand_problems(value, source_, sink_);
        return;
      case PolicyKey::kExtraProblems:
        extra_problems_ = expand_problems(value, source_, sink_);
        return;
      case PolicyKey::kEngines:
        engines_ = settings_.read_engines(value);
        return;
      case PolicyKey::kSuppressions:
        policy_.suppressions =
            read_suppressions(value, source_, check_ids_, sink_);
        return;
      case PolicyKey::kRuntime:
        policy_.runtime = read_runtime(value, source_, sink_);
        return;
      case PolicyKey::kCoverage:
      case PolicyKey::kChecks:
      case PolicyKey::kTolerances:
        settings_.read(entry, top_);
        return;
    }
  }

  // What the file leaves out, from the built-in policy.
  Policy built_in() {
    Policy base;
    base.patches.emplace_back();
    if (problems_ && engines_) return base;
    const SourceText text(default_policy_text(), "built-in");
    // A check that is not among check_ids_ is none that could be overridden.
    DiagnosticSink ignored(text);
    const std::optional<YamlNode> root = read_yaml(text, ignored);
    if (!root) return base;
    SettingsReader settings(text, check_ids_, ignored);
    for (const YamlEntry& entry : checked_entries(*root, ignored)) {
      if (!problems_ && entry.name == "problems")
        base.problems = expand_problems(entry.value, text, ignored);
      if (!engines_ && entry.name == "engines")
        for (SettingsPatch& patch : settings.read_engines(entry.value))
          if (sets_something(patch)) base.patches.push_back(std::move(patch));
    }
    return base;
  }

  Policy read_base(const YamlNode& node) {
    Policy nothing;
    nothing.patches.emplace_back();
    if (node.kind == YamlNode::Kind::kRefused) return nothing;
    std::string problem;
    if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
      problem = "expected the name of one policy file, got " +
                (node.kind == YamlNode::Kind::kScalar ? "an empty text"
                                                      : describe(node));
    } else if (auto base = load_base_(node.text, problem)) {
      return std::move(*base);
    }
    sink_.error(node.offset, "extends: " + problem);
    return nothing;
  }

  // Lays what this file says over the base. The base's first patch is its top
  // level.
  void combine(Policy base) {
    if (!seed_given_ && extends_) {
      policy_.seed = base.seed;
      policy_.seed_location = base.seed_location;
    }
    const SourceLocation location = top_.location;
    policy_.patches = std::move(base.patches);
    override_with(policy_.patches.front(), top_);
    policy_.patches.front().location = location;
    if (engines_) append(policy_.patches, std::move(*engines_));
    policy_.problems =
        problems_ ? std::move(*problems_) : std::move(base.problems);
    append(policy_.problems, std::move(extra_problems_));
    if (policy_.runtime == nullptr) policy_.runtime = base.runtime;
    std::swap(policy_.suppressions, base.suppressions);
    append(policy_.suppressions, std::move(base.suppressions));
  }

  void read_seed(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kRefused) return;
    std::string problem;
    if (node.kind == YamlNode::Kind::kScalar) {
      problem = number_style_error(node);
      const auto seed = parse_seed(node.text);
      if (problem.empty() && seed) {
        policy_.seed = *seed;
        policy_.seed_location = source_.location(node.offset);
        seed_given_ = true;
        return;
      }
    }
    if (problem.empty())
      problem = "expected a whole number from 0 to 18446744073709551615, got " +
                describe(node);
    sink_.error(node.offset, "seed: " + problem);
  }

  const SourceText& source_;
  std::span<const std::string_view> check_ids_;
  const LoadBase& load_base_;
  DiagnosticSink& sink_;
  SettingsReader settings_;
  Policy policy_;

  // What the file itself says.
  SettingsPatch top_;
  bool seed_given_ = false;
  const YamlNode* extends_ = nullptr;
  std::optional<std::vector<PolicyProblem>> problems_;
  std::vector<PolicyProblem> extra_problems_;
  std::optional<std::vector<SettingsPatch>> engines_;
};

}  // namespace

Policy read_policy(const YamlNode& root, const SourceText& source,
                   std::span<const std::string_view> check_ids,
                   const LoadBase& load_base, DiagnosticSink& sink) {
  return PolicyReader(source, check_ids, load_base, sink).read(root);
}

void override_with(SettingsPatch& patch, const SettingsPatch& later) {
  if (later.coverage) patch.coverage = later.coverage;
  for (const auto& [id, severity] : later.severities)
    patch.severities[id] = severity;
  for (const auto& [id, by_dtype] : later.tolerances)
    for (const auto& [dtype, tolerance] : by_dtype)
      patch.tolerances[id][dtype] = tolerance;
  for (const auto& [path, place] : later.places) patch.places[path] = place;
}

}  // namespace attnguard
