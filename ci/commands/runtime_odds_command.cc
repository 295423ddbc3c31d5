// `attnguard runtime odds`: how soon the live guard sees a fault.
#include <cmath>
#include <cstdio>
#include <ostream>
#include <vector>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/policy/runtime_options.h"
#include "guard/policy/runtime_values.h"
#include "guard/report/terminal.h"
#include "guard/runtime/odds.h"

namespace attnguard {
namespace {

constexpr std::string_view kDefaultRows = "1/4096,64/4096,1%,10%,all";

struct Share {
  std::string text;
  double wrong = 0;
};

struct OddsRequest {
  RuntimePolicy policy;
  RuntimeSettings settings;  // of the layer
  std::vector<Share> shares;
  double certainty = 0.999;
  double calls_per_second = 0;  // 0: not asked
};

// "64/4096", "1%", "0.01" or "all".
std::optional<double> parse_wrong(std::string_view text) {
  if (text == "all") return 1;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto of = parse_double(text.substr(slash + 1));
    const auto part = parse_double(text.substr(0, slash));
    if (!part || !of) return std::nullopt;
    return *part / *of;
  }
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto number = parse_double(text);
  if (!number) return std::nullopt;
  return *number / (percent ? 100 : 1);
}

Status read_shares(const Arguments& arguments, OddsRequest& request) {
  const std::string text =
      arguments.value("--rows").value_or(std::string(kDefaultRows));
  for (std::string_view piece : split(text, ',')) {
    const auto wrong = parse_wrong(piece);
    if (!wrong || !(*wrong > 0 && *wrong <= 1))
      return invalid_argument(
          "--rows: expected shares of rows such as "
          "1/4096,1%,all, got '" +
          std::string(piece) + "'");
    request.shares.push_back({std::string(piece), *wrong});
  }
  return ok_status();
}

Status read_numbers(const Arguments& arguments, OddsRequest& request) {
  if (const auto text = arguments.value("--certainty")) {
    const auto certainty = parse_wrong(*text);
    if (!certainty || !(*certainty > 0 && *certainty < 1))
      return invalid_argument(
          "--certainty: expected a share below 1 such as 99.9%, got '" + *text +
          "'");
    request.certainty = *certainty;
  }
  if (const auto text = arguments.value("--calls-per-second")) {
    const auto rate = parse_double(*text);
    if (!rate || !(*rate > 0 && *rate <= 1e12))
      return invalid_argument(
          "--calls-per-second: expected a number above 0, got '" + *text + "'");
    request.calls_per_second = *rate;
  }
  if (const auto text = arguments.value("--sample")) {
    const auto every = parse_one_in(*text);
    if (!every.ok())
      return invalid_argument("--sample: " + every.status().message());
    request.settings.sample_every = every.value();
  }
  return ok_status();
}

// Three digits, and no exponent where people count.
std::string short_number(double value) {
  if (std::isinf(value)) return "never";
  if (value >= 1e15) return format_double(value);
  return std::to_string(static_cast<std::int64_t>(value));
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g %%", share * 100);
  return text;
}

std::string duration(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr Unit kUnits[] = {
      {365.25 * 86400, "years"}, {86400, "days"}, {3600, "h"}, {60, "min"}};
  if (std::isinf(seconds)) return "never";
  char text[48];
  for (const Unit& unit : kUnits)
    if (seconds >= unit.seconds) {
      std::snprintf(text, sizeof(text), "%.3g %s", seconds / unit.seconds,
                    unit.name);
      return text;
    }
  std::snprintf(text, sizeof(text), "%.3g s", seconds);
  return text;
}

void print_premises(const OddsRequest& request, std::ostream& out) {
  const RuntimeSettings& settings = request.settings;
  out << "sample        " << one_in_text(settings.sample_every);
  if (settings.sample_every > 0)
    out << ": each call is looked at with this chance";
  out << "\nrows          " << settings.rows
      << " of each are computed again in fp64\n";
  if (request.policy.max_overhead)
    out << "max_overhead  " << share_text(request.policy.max_overhead)
        << ": where it is reached fewer calls are looked at; the\n"
           "              metric attnguard_sampling_ratio says how many, for "
           "--sample\n";
}

void print_table(const OddsRequest& request, std::ostream& out) {
  const RuntimeSettings& settings = request.settings;
  std::vector<Column> columns(3);
  columns[0].title = "wrong rows";
  columns[1].title = "seen in a look";
  columns[2].title = "calls for " + percent(request.certainty);
  if (request.calls_per_second > 0)
    columns.push_back(
        {"at " + format_double(request.calls_per_second) + " calls/s",
         true,
         {}});
  for (const Share& share : request.shares) {
    const double chance = chance_per_look(share.wrong, settings.rows);
    const double calls =
        calls_until_seen(chance, settings.sample_every, request.certainty);
    columns[0].cells.push_back({share.text});
    columns[1].cells.push_back({percent(chance)});
    columns[2].cells.push_back({short_number(calls)});
    if (request.calls_per_second > 0)
      columns[3].cells.push_back({duration(calls / request.calls_per_second)});
  }
  for (const std::string& line : table_lines(columns, 0, Painter(false)))
    out << line << '\n';
}

constexpr std::string_view kSource = R"(
A look sees a fault of the row fraction f with 1 - (1 - f)^k after k rows that
are drawn independently. Half of the draws go to first rows, last rows and tile
edges, so f counts half here unless all rows are wrong: a fault on an edge is
seen sooner. Looks come at random, each call with the chance p of a look, so n
calls see it with 1 - (1 - p (1 - (1 - f)^k))^n. A row is wrong when its error
is beyond what rounding explains. Finite, value-range and the canary see some
faults sooner; these are the odds of recompute alone.
)";

int run_odds(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::optional<Policy> policy =
      read_policy(arguments.value("--policy"), err, surroundings.folder);
  if (!policy) return kExitUsage;
  OddsRequest request;
  if (policy->runtime) request.policy = *policy->runtime;
  if (!policy->runtime && arguments.value("--policy"))
    return usage_error(err, "the policy has no 'runtime' section",
                       "leave out --policy for the built-in settings");
  const RuntimeOptionsParse options = apply_runtime_environment(request.policy);
  if (!options.ok()) return usage_error(err, options.errors.front());
  request.settings =
      request.policy.resolve(arguments.value("--layer").value_or(""));
  Status status = read_shares(arguments, request);
  if (status.ok()) status = read_numbers(arguments, request);
  if (!status.ok())
    return usage_error(err, status.message(),
                       "'attnguard runtime odds --help' explains the options");
  print_premises(request, out);
  out << '\n';
  print_table(request, out);
  out << kSource;
  if (!request.settings.is_on(LiveCheck::kRecompute)) {
    out << "\nThe policy turns recompute off: none of this is seen.\n";
    return kExitInconclusive;
  }
  return kExitPass;
}

}  // namespace

extern const CommandInfo kRuntimeOddsCommand = {
    .path = "runtime odds",
    .summary = "How soon the live guard sees a fault",
    .operand = {},
    .options =
        {{"--policy", "FILE",
          "Whose 'runtime' section counts; default: attnguard.yaml here or "
          "above, up to the repository's root, else built-in"},
         {"--layer", "NAME",
          "The layer; default: one without settings of its own"},
         {"--rows", "SHARES",
          "Shares of wrong rows; default: 1/4096,64/4096,1%,10%,all"},
         {"--certainty", "SHARE", "default: 99.9%"},
         {"--sample", "1/N",
          "Overrides the policy, e.g. with what was measured"},
         {"--calls-per-second", "N", "Adds the time that this takes"}},
    .run = run_odds,
};

}  // namespace attnguard
