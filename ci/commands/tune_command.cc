// `attnguard tune`: measures an engine's own error, and writes the policy with
// the margin it leaves.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "ci/adapter_table.h"
#include "ci/command_table.h"
#include "ci/isolate/isolated_engine.h"
#include "ci/output_file.h"
#include "ci/tune/tune.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/policy/edit_tolerances.h"
#include "guard/policy/policy_yaml.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kMostRepeats = 100;
constexpr double kMostMargin = 1000;
constexpr std::size_t kMostHidden = 20;  // Known defects that are listed.

struct TuneRequest {
  std::string engine;
  std::string policy_name = "built-in";
  std::string policy_text;
  Policy policy;
  TuneOptions options;
  OutputFile output;
};

Status read_options(const Arguments& arguments, TuneRequest& request) {
  if (const auto margin = arguments.value("--margin")) {
    const auto number = parse_double(*margin);
    if (!number || !(*number >= 1 && *number <= kMostMargin))
      return invalid_argument("--margin: '" + *margin +
                              "' is not a number from 1 to 1000");
    request.options.margin = *number;
  }
  if (const auto repeats = arguments.value("--repeats")) {
    const auto number = whole_number("--repeats", *repeats, 1, kMostRepeats);
    if (!number.ok()) return number.status();
    request.options.repeats = static_cast<int>(number.value());
  }
  const std::vector<std::string> lines = arguments.values("--problem");
  if (!lines.empty()) request.policy.problems.clear();
  for (const std::string& line : lines) {
    const Result<Problem> problem = Problem::parse(line);
    if (!problem.ok())
      return invalid_argument("--problem '" + line +
                              "': " + problem.status().message());
    request.policy.problems.push_back({problem.value(), {}});
  }
  if (!arguments.value("--output"))
    return invalid_argument("where to? give --output FILE");
  return request.output.open(*arguments.value("--output"), "policy");
}

// False: `err` says why.
bool read_input(const Arguments& arguments, TuneRequest& request,
                std::ostream& err) {
  const auto file = arguments.value("--policy");
  const std::optional<Policy> policy = read_policy(file, err);
  if (!policy) return false;
  request.policy = *policy;
  request.policy_text = schema_modeline() + "version: 1\n";
  if (!file || *file == "built-in") return true;
  request.policy_name = *file;
  const Result<std::string> text = read_policy_text(*file);
  if (text.ok())
    request.policy_text = text.value();
  else
    usage_error(err, *file + ": " + text.status().message());
  return text.ok();
}

std::string text_of(const std::optional<double>& value) {
  return value ? format_double(*value) : "-";
}

std::string measured_text(const Measurement& one) {
  return fmt::format("largest error {:.2g} in {} ({}){}", one.error,
                     counted(one.judged, "run"), one.probe,
                     one.auto_holds ? "" : "; more than auto allows");
}

std::string seen_text(const Measurement& one) {
  std::string text;
  const auto add = [&text](const char* what,
                           const std::optional<double>& size) {
    if (size)
      text += fmt::format("{} {} {}", text.empty() ? "sees" : ",", what,
                          format_double(*size));
  };
  add("a leak of", one.leak);
  add("a dropped weight of", one.dropped);
  add("a row sum off by", one.mass);
  return text.empty() ? "sees any difference that is larger" : text;
}

std::vector<NewTolerance> tolerances_of(const Measured& measured) {
  std::vector<NewTolerance> all;
  for (const Measurement& one : measured.measurements)
    all.push_back({one.check,
                   one.dtype,
                   {Tolerance::Kind::kNumber, one.tolerance},
                   {measured_text(one), seen_text(one)}});
  return all;
}

Settings tuned_settings(const TuneRequest& request, const Measured& measured,
                        const std::string& engine) {
  Settings settings = request.policy.resolve(engine);
  for (const Measurement& one : measured.measurements)
    settings.checks[one.check].tolerances[one.dtype] = {
        Tolerance::Kind::kNumber, one.tolerance};
  settings.suppressions.clear();
  return settings;
}

std::vector<Dtype> dtypes_of(const Measured& measured) {
  std::vector<Dtype> dtypes;
  for (const Measurement& one : measured.measurements)
    if (std::ranges::find(dtypes, one.dtype) == dtypes.end())
      dtypes.push_back(one.dtype);
  return dtypes;
}

void print_table(const Measured& measured, std::ostream& out) {
  std::vector<Column> columns(7);
  const char* titles[] = {"check",     "dtype",         "error",
                          "tolerance", "smallest leak", "dropped weight",
                          "row sum"};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    columns[c].title = titles[c];
    columns[c].right = c > 1;
  }
  for (const Measurement& one : measured.measurements) {
    const std::string cells[] = {
        one.check,
        std::string(dtype_name(one.dtype)),
        fmt::format("{:.2g}", one.error),
        format_double(one.tolerance) + (one.auto_holds ? "" : " *"),
        text_of(one.leak),
        text_of(one.dropped),
        text_of(one.mass)};
    for (std::size_t c = 0; c < columns.size(); ++c)
      columns[c].cells.push_back({cells[c]});
  }
  for (const std::string& line : table_lines(columns, 0, Painter(false)))
    out << line << '\n';
  const bool starred = std::ranges::any_of(
      measured.measurements, [](const auto& one) { return !one.auto_holds; });
  if (starred) out << "* the engine rounds more than it declares\n";
  out << '\n';
}

void print_defective(const Measured& measured, std::ostream& out) {
  for (const Defective& one : measured.defective)
    out << terminal_text(one.check)
        << (one.beyond_rounding
                ? " is violated by more than rounding explains; it gets no "
                  "tolerance\n  "
                : " is violated by rounding that the engine does not declare; "
                  "say how it rounds (Capabilities::numerics)\n  ")
        << terminal_text(one.problem) << "\n  " << terminal_text(one.message)
        << "\n";
  if (!measured.defective.empty()) out << '\n';
}

std::string comma_list(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

void print_hidden(const std::vector<HiddenDefect>& hidden, std::ostream& out) {
  if (hidden.empty()) {
    out << "no known defect that auto catches is hidden by these tolerances\n";
    return;
  }
  out << counted(static_cast<std::int64_t>(hidden.size()), "known defect")
      << " that auto catches would be hidden by these tolerances:\n";
  for (std::size_t i = 0; i < hidden.size() && i < kMostHidden; ++i)
    out << "  " << hidden[i].defect << "  (" << comma_list(hidden[i].checks)
        << " sees it with auto)\n    " << hidden[i].problem << '\n';
  if (hidden.size() > kMostHidden)
    out << "  and " << hidden.size() - kMostHidden << " more\n";
}

std::vector<std::string> heading_of(const TuneRequest& request,
                                    const Measured& measured,
                                    const std::vector<HiddenDefect>& hidden) {
  std::vector<std::string> lines = {fmt::format(
      "attnguard tune: {} times the largest error on {}, {} from {}",
      format_double(request.options.margin),
      counted(measured.problems, "problem"),
      counted(request.options.repeats, "seed"), request.policy.seed)};
  for (std::size_t i = 0; i < hidden.size() && i < kMostHidden; ++i)
    lines.push_back("hides the known defect " + hidden[i].defect + " from " +
                    comma_list(hidden[i].checks));
  return lines;
}

// One line that is rewritten before each problem.
void show_progress(TuneRequest& request, std::ostream& err) {
  request.options.progress = [&err](std::size_t done, std::size_t total) {
    err << "\r\x1b[Kproblem " << done + 1 << " of " << total << std::flush;
  };
}

// kExitPass, or the code to end with.
int open_tuned(const Arguments& arguments, const Surroundings& surroundings,
               const std::string& spec, std::optional<Engine>& into,
               std::ostream& err) {
  const bool isolate =
      !arguments.flag("--no-isolate") && !surroundings.worker.empty();
  IsolationOptions isolation;
  isolation.program = surroundings.worker;
  Result<Engine> engine =
      isolate ? open_isolated(spec, isolation) : open_engine(spec);
  if (engine.ok()) {
    into = std::move(engine.value());
    return kExitPass;
  }
  usage_error(err, engine.status().message(),
              "'attnguard list engines' shows what there is");
  const StatusCode code = engine.status().code();
  return code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound
             ? kExitUsage
             : kExitEngineError;
}

int write_policy(TuneRequest& request, const Measured& measured,
                 const std::vector<HiddenDefect>& hidden,
                 const std::string& engine, const std::string& file,
                 std::ostream& out, std::ostream& err) {
  const Result<std::string> text =
      edit_tolerances(request.policy_text, request.policy_name, engine,
                      heading_of(request, measured, hidden),
                      tolerances_of(measured), check_ids());
  if (!text.ok()) return usage_error(err, text.status().message());
  const Status status = request.output.commit(text.value());
  if (!status.ok()) return usage_error(err, status.message());
  out << "written to " << terminal_text(file) << '\n';
  return measured.defective.empty() ? kExitPass : kExitViolation;
}

int run_tune(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const auto spec = arguments.value("--engine");
  if (!spec)
    return usage_error(err, "no engine given",
                       "write e.g. --engine builtin:tiled");
  TuneRequest request;
  if (!read_input(arguments, request, err)) return kExitUsage;
  if (const Status status = read_options(arguments, request); !status.ok())
    return usage_error(err, status.message(),
                       "'attnguard tune --help' explains the options");
  std::optional<Engine> engine;
  if (const int code = open_tuned(arguments, surroundings, *spec, engine, err);
      code != kExitPass)
    return code;
  if (surroundings.err_is_terminal) show_progress(request, err);
  Measured measured = measure(*engine, request.policy, request.options);
  if (surroundings.err_is_terminal) err << "\r\x1b[K" << std::flush;
  if (!measured.engine_error.empty()) {
    usage_error(err, "the engine failed: " + measured.engine_error);
    return kExitEngineError;
  }
  print_defective(measured, out);
  if (measured.measurements.empty()) {
    out << "nothing to tune: "
        << (measured.problems == 0
                ? "the engine supports no problem of the policy\n"
                : "no error was measured that a tolerance could cover\n");
    return measured.defective.empty() ? kExitInconclusive : kExitViolation;
  }
  for (Measurement& one : measured.measurements) find_smallest_faults(one);
  print_table(measured, out);
  Settings before = request.policy.resolve(engine->name);
  for (auto& [id, check] : before.checks) check.tolerances.clear();
  before.suppressions.clear();
  const std::vector<HiddenDefect> hidden = hidden_defects(
      *engine, before, tuned_settings(request, measured, engine->name),
      dtypes_of(measured));
  print_hidden(hidden, out);
  return write_policy(request, measured, hidden, engine->name,
                      *arguments.value("--output"), out, err);
}

}  // namespace

extern const CommandInfo kTuneCommand = {
    .path = "tune",
    .summary =
        "Measure an engine's error and write tolerances that leave a "
        "margin",
    .operand = {},
    .options =
        {{"--engine", "SPEC", "The engine, as for check"},
         {"--policy", "FILE",
          "Gets the tolerances; its comments and order stay; default: a new "
          "file that extends the built-in policy"},
         {"--output", "FILE", "Where the policy goes"},
         {"--margin", "X", "Times the largest error; default: 2"},
         {"--repeats", "N", "Seeds to try; default: 1"},
         {"--problem", "LINE",
          "Measure on this problem instead of the policy's; repeatable", true},
         {"--no-isolate", nullptr, "Run the engine in this process"}},
    .run = run_tune,
};

}  // namespace attnguard
