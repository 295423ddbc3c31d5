#include "guard/policy/runtime_options.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include "guard/base/text.h"
#include "guard/policy/runtime_values.h"

namespace attnguard {
namespace {

using OptionPlace = RuntimeSettingPlace;

// Puts a parsed value where it belongs, or hands on what is wrong with it.
template <typename T, typename Target>
Status store(Result<T> value, Target& target) {
  if (!value.ok()) return value.status();
  target = std::move(value.value());
  return ok_status();
}

Result<std::uint64_t> seed_option(std::string_view text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && at == end) return seed;
  return invalid_argument(
      "expected a whole number from 0 to 18446744073709551615, got '" +
      std::string(text.substr(0, 40)) + "'");
}

// Of a patch: a field that is set or not.
template <typename T>
RuntimeOption patch_option(const char* name, const char* values,
                           const char* help,
                           std::optional<T> RuntimePatch::*field,
                           Result<T> (*parse)(std::string_view),
                           std::string (*print)(T)) {
  return {.name = name,
          .values = values,
          .help = help,
          .by_layer = true,
          .set =
              [field, parse](OptionPlace place, std::string_view text) {
                return store(parse(text), place.patch.*field);
              },
          .get =
              [field, print](const RuntimePolicy&, const RuntimePatch& patch) {
                return patch.*field ? print(*(patch.*field)) : std::string();
              }};
}

// Of the policy: one value for all layers.
template <typename Set, typename Get>
RuntimeOption policy_option(const char* name, const char* values,
                            const char* help, Set set, Get get) {
  return {
      .name = name,
      .values = values,
      .help = help,
      .set = [set](OptionPlace place,
                   std::string_view text) { return set(place.policy, text); },
      .get = [get](const RuntimePolicy& policy,
                   const RuntimePatch&) { return get(policy); }};
}

Result<std::int64_t> parse_rows(std::string_view text) {
  return parse_count(text, 1, 1024);
}
Result<double> parse_seconds(std::string_view text) {
  return parse_amount(text, "s");
}
std::string print_int(std::int64_t value) { return std::to_string(value); }
std::string print_bool(bool value) { return value ? "true" : "false"; }

constexpr std::string_view kActionValues = "ACTION,...";

RuntimeOption actions_of_severity(const char* name, const char* help,
                                  std::vector<Severity> severities,
                                  bool printed) {
  return {
      .name = name,
      .values = std::string(kActionValues),
      .help = help,
      .by_layer = true,
      .set = [severities](OptionPlace place, std::string_view text) -> Status {
        const Result<ActionSet> actions = parse_actions(text);
        if (!actions.ok()) return actions.status();
        for (Severity severity : severities)
          place.patch.severity_actions[severity] = actions.value();
        return ok_status();
      },
      .get =
          [severities, printed](const RuntimePolicy&,
                                const RuntimePatch& patch) {
            const auto found = patch.severity_actions.find(severities.front());
            return printed && found != patch.severity_actions.end()
                       ? actions_text(found->second)
                       : std::string();
          }};
}

RuntimeOption actions_of_check(LiveCheck check) {
  const std::string id(live_check_id(check));
  return {.name = "on_" + id,
          .values = std::string(kActionValues),
          .help = "What follows a violation of " + id + " alone",
          .by_layer = true,
          .set =
              [check](OptionPlace place, std::string_view text) {
                return store(parse_actions(text),
                             place.patch.check_actions[check]);
              },
          .get =
              [check](const RuntimePolicy&, const RuntimePatch& patch) {
                const auto found = patch.check_actions.find(check);
                return found == patch.check_actions.end()
                           ? std::string()
                           : actions_text(found->second);
              }};
}

RuntimeOption severity_of_check(LiveCheck check) {
  const std::string id(live_check_id(check));
  return {.name = id,
          .values = "error|warning|off",
          .help = check == LiveCheck::kEngine
                      ? "Severity of what hooks and the host report; off: "
                        "nothing is reported"
                      : "Severity of the check; off: it is not made",
          .by_layer = true,
          .is_check = true,
          .set =
              [check](OptionPlace place, std::string_view text) {
                return store(parse_severity(text),
                             place.patch.severities[check]);
              },
          .get =
              [check](const RuntimePolicy&, const RuntimePatch& patch) {
                const auto found = patch.severities.find(check);
                return found == patch.severities.end()
                           ? std::string()
                           : std::string(severity_name(found->second));
              }};
}

void add_sampling(std::vector<RuntimeOption>& options) {
  options.push_back(patch_option<std::int64_t>(
      "sample", "1/N", "One call in N is looked at; 0: none",
      &RuntimePatch::sample_every, parse_one_in, one_in_text));
  options.push_back(policy_option(
      "max_overhead", "SHARE",
      "Most of the time that the guard may take (0.5%); none: no limit",
      [](RuntimePolicy& policy, std::string_view text) {
        return store(parse_share(text), policy.max_overhead);
      },
      [](const RuntimePolicy& policy) {
        return share_text(policy.max_overhead);
      }));
  options.push_back(policy_option(
      "window", "SECONDS", "The span over which max_overhead is kept",
      [](RuntimePolicy& policy, std::string_view text) {
        return store(parse_seconds(text), policy.window);
      },
      [](const RuntimePolicy& policy) {
        return format_double(policy.window);
      }));
  options.push_back(patch_option<std::int64_t>(
      "rows", "N", "Rows that recompute computes again in a checked call",
      &RuntimePatch::rows, parse_rows, print_int));
  options.push_back(patch_option<std::int64_t>(
      "shadow", "1/N", "One checked call in N gets the shadow checks; 0: none",
      &RuntimePatch::shadow_every, parse_one_in, one_in_text));
}

void add_canary(std::vector<RuntimeOption>& options) {
  options.push_back(patch_option<bool>(
      "canary_at_start", "true|false", "The canary runs at the start",
      &RuntimePatch::canary_at_start, parse_switch, print_bool));
  options.push_back(patch_option<bool>(
      "canary_on_new_shape", "true|false",
      "The canary runs for each new class of shapes",
      &RuntimePatch::canary_on_new_shape, parse_switch, print_bool));
  options.push_back(patch_option<double>(
      "canary_interval", "SECONDS", "The canary runs again after it; 0: never",
      &RuntimePatch::canary_interval, parse_seconds, format_double));
}

void add_actions(std::vector<RuntimeOption>& options) {
  std::string actions = "What follows a violation:";
  for (const ActionName& action : all_actions())
    actions += ' ' + std::string(action.name);
  options.push_back(actions_of_severity(
      "on_violation", "", {Severity::kError, Severity::kWarning}, false));
  options.back().help = actions;
  options.push_back(actions_of_severity("on_error",
                                        "The same for checks of severity error",
                                        {Severity::kError}, true));
  options.push_back(actions_of_severity(
      "on_warning", "The same for checks of severity warning",
      {Severity::kWarning}, true));
  for (LiveCheck check : all_live_checks())
    options.push_back(actions_of_check(check));
}

void add_dump(std::vector<RuntimeOption>& options) {
  options.push_back(policy_option(
      "dump_dir", "FOLDER", "Where dumps are written; made when missing",
      [](RuntimePolicy& policy, std::string_view text) {
        if (text.empty()) return invalid_argument("expected a folder");
        policy.dump.folder = text;
        return ok_status();
      },
      [](const RuntimePolicy& policy) { return policy.dump.folder; }));
  options.push_back(policy_option(
      "dump_max_bytes", "SIZE", "Most that one dump may take (64MiB)",
      [](RuntimePolicy& policy, std::string_view text) {
        return store(parse_bytes(text), policy.dump.max_bytes);
      },
      [](const RuntimePolicy& policy) {
        return bytes_text(policy.dump.max_bytes);
      }));
  options.push_back(policy_option(
      "dump_max_files", "N", "Most dumps in the life of the process",
      [](RuntimePolicy& policy, std::string_view text) {
        return store(parse_count(text, 0, 1'000'000), policy.dump.max_files);
      },
      [](const RuntimePolicy& policy) {
        return std::to_string(policy.dump.max_files);
      }));
  options.push_back(policy_option(
      "log_per_minute", "N", "Most lines in the log; the rest is counted",
      [](RuntimePolicy& policy, std::string_view text) {
        return store(parse_amount(text, ""), policy.log_per_minute);
      },
      [](const RuntimePolicy& policy) {
        return format_double(policy.log_per_minute);
      }));
  options.push_back(policy_option(
      "seed", "N", "Of the random choices of calls and rows",
      [](RuntimePolicy& policy, std::string_view text) {
        return store(seed_option(text), policy.seed);
      },
      [](const RuntimePolicy& policy) { return std::to_string(policy.seed); }));
}

std::vector<RuntimeOption> make_options() {
  std::vector<RuntimeOption> options;
  add_sampling(options);
  add_canary(options);
  for (LiveCheck check : all_live_checks())
    options.push_back(severity_of_check(check));
  add_actions(options);
  add_dump(options);
  return options;
}

// Splits at colons outside of quotes; quotes are removed. nullopt: a quote
// without an end.
std::optional<std::vector<std::string>> pieces_of(std::string_view text) {
  std::vector<std::string> pieces(1);
  char quote = 0;
  for (char c : text) {
    if (quote != 0 && c == quote)
      quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (quote == 0 && c == ':')
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  if (quote != 0) return std::nullopt;
  return pieces;
}

// A check's own actions are stronger than its severity's; what the options
// say of severities is stronger than what the policy said of checks.
void outrank(const RuntimePolicy& policy, RuntimePatch& patch) {
  if (patch.severity_actions.empty()) return;
  const RuntimeSettings settings = policy.resolve("");
  for (const RuntimePatch& earlier : policy.patches)
    for (const auto& [check, actions] : earlier.check_actions) {
      const auto severities = patch.severities.find(check);
      const Severity severity = severities != patch.severities.end()
                                    ? severities->second
                                    : settings.check(check).severity;
      const auto said = patch.severity_actions.find(severity);
      if (said != patch.severity_actions.end())
        patch.check_actions.emplace(check, said->second);
    }
}

class OptionsReader {
 public:
  explicit OptionsReader(const RuntimePolicy& policy) : policy_(policy) {}

  void read(std::string_view text) {
    const auto pieces = pieces_of(text);
    if (!pieces) {
      error("a quote has no end in '" + std::string(text.substr(0, 80)) + "'");
      return;
    }
    for (const std::string& piece : *pieces)
      if (!trim(piece).empty()) read_piece(trim(piece));
  }

  RuntimeOptionsParse finish(RuntimePolicy& policy) {
    if (parse_.ok()) {
      outrank(policy, patch_);
      policy_.patches.push_back(std::move(patch_));
      if (Status status = policy_.validate(); !status.ok())
        error(status.message());
    }
    if (parse_.ok()) policy = std::move(policy_);
    return std::move(parse_);
  }

 private:
  void error(const std::string& message) {
    parse_.errors.push_back(std::string(kRuntimeOptionsVariable) + ": " +
                            message);
  }

  void read_piece(std::string_view piece) {
    const std::size_t equal = piece.find('=');
    const std::string_view name = trim(piece.substr(0, equal));
    std::vector<std::string_view> known = runtime_option_names();
    known.push_back("help");
    const RuntimeOption* option = find_runtime_option(name);
    if (option == nullptr && name != "help")
      return error("unknown option '" + std::string(name.substr(0, 40)) + "'" +
                   suggestion(name.substr(0, 40), known));
    if (equal == std::string_view::npos)
      return error(std::string(name) + ": has no value; write " +
                   std::string(name) + "=" +
                   (option != nullptr ? option->values : "1"));
    const std::string_view value = trim(piece.substr(equal + 1));
    if (option == nullptr) {
      const Status status = store(parse_switch(value), parse_.help);
      if (!status.ok()) error("help: " + status.message());
      return;
    }
    const Status status = option->set({policy_, patch_}, value);
    if (!status.ok()) error(option->name + ": " + status.message());
  }

  RuntimePolicy policy_;
  RuntimePatch patch_;
  RuntimeOptionsParse parse_;
};

// A patch in which everything is set to what a layer without a name gets.
RuntimePatch resolved_patch(const RuntimePolicy& policy) {
  const RuntimeSettings settings = policy.resolve("");
  RuntimePatch patch;
  patch.sample_every = settings.sample_every;
  patch.rows = settings.rows;
  patch.shadow_every = settings.shadow_every;
  patch.canary_at_start = settings.canary_at_start;
  patch.canary_on_new_shape = settings.canary_on_new_shape;
  patch.canary_interval = settings.canary_interval;
  for (LiveCheck check : all_live_checks()) {
    patch.severities[check] = settings.check(check).severity;
    patch.check_actions[check] = settings.check(check).actions;
  }
  return patch;
}

}  // namespace

std::span<const RuntimeOption> all_runtime_options() {
  static const std::vector<RuntimeOption> kOptions = make_options();
  return kOptions;
}

const RuntimeOption* find_runtime_option(std::string_view name) {
  for (const RuntimeOption& option : all_runtime_options())
    if (option.name == name) return &option;
  return nullptr;
}

std::vector<std::string_view> runtime_option_names() {
  std::vector<std::string_view> names;
  for (const RuntimeOption& option : all_runtime_options())
    names.push_back(option.name);
  return names;
}

RuntimeOptionsParse apply_runtime_options(std::string_view text,
                                          RuntimePolicy& policy) {
  OptionsReader reader(policy);
  reader.read(text);
  return reader.finish(policy);
}

RuntimeOptionsParse apply_runtime_environment(RuntimePolicy& policy) {
  const char* text = std::getenv(kRuntimeOptionsVariable);
  return text == nullptr ? RuntimeOptionsParse{}
                         : apply_runtime_options(text, policy);
}

std::string runtime_options_help(const RuntimePolicy& policy) {
  const RuntimePatch patch = resolved_patch(policy);
  std::string text =
      std::string(kRuntimeOptionsVariable) + "=name=value:name=value:...\n";
  for (const RuntimeOption& option : all_runtime_options()) {
    const std::string value = option.get(policy, patch);
    text += "  " + option.name + "=" + option.values + '\n';
    text +=
        "      " + option.help + (value.empty() ? "" : "; now " + value) + '\n';
  }
  return text + "  help=1\n      Shows this\n";
}

}  // namespace attnguard
