// `attnguard check`: everything that can be wrong with the request is found
// before the first engine runs.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <ostream>

#include "ci/adapter_table.h"
#include "ci/command_table.h"
#include "ci/isolate/isolated_engine.h"
#include "ci/output_file.h"
#include "ci/report_options.h"
#include "ci/run/failures.h"
#include "ci/run/job_worker.h"
#include "ci/run/replay.h"
#include "ci/run/run.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "guard/policy/baseline.h"
#include "guard/report/report.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

// The request, once every value was understood.
struct CheckRequest : RunRequest {
  const ReportFormat* format = nullptr;
  bool color = false;
  bool to_stdout = true;
  OutputFile output;
  bool isolate = true;
  IsolationOptions isolation;
  std::vector<Suppression> baseline;
  bool write_baseline = false;
  OutputFile new_baseline;
  bool findings_fail = true;
};

Status unknown(std::string_view option, std::string_view value,
               std::span<const std::string_view> known) {
  return invalid_argument(std::string(option) + ": unknown '" +
                          std::string(value) + "'" + suggestion(value, known));
}

Status read_numbers(const Arguments& arguments, CheckRequest& request) {
  if (const auto seed = arguments.value("--seed")) {
    const auto number = whole_number("--seed", *seed, 0, UINT64_MAX);
    if (!number.ok()) return number.status();
    request.policy.seed = number.value();
  }
  if (const auto threads = arguments.value("--threads")) {
    const auto number = whole_number("--threads", *threads, 1, kMostThreads);
    if (!number.ok()) return number.status();
    request.options.threads = static_cast<int>(number.value());
  }
  if (const auto seconds = arguments.value("--shrink-time")) {
    const auto number =
        whole_number("--shrink-time", *seconds, 0, kMostSeconds);
    if (!number.ok()) return number.status();
    request.options.shrink_seconds = static_cast<double>(number.value());
  }
  return ok_status();
}

// Values of ci/run. Without a program of its own there are no processes.
Status read_run(const Arguments& arguments, const Surroundings& surroundings,
                CheckRequest& request) {
  auto settings = read_run_settings(arguments);
  if (!settings.ok()) return settings.status();
  request.settings = std::move(settings.value());
  request.program = surroundings.worker;
  request.words = surroundings.words;
  request.catch_signals = surroundings.catch_signals;
  // Its processes would run the engines, and no debugger would see them. "auto"
  // is refused on one core too: what is right does not depend on the machine.
  if (arguments.flag("--no-isolate") &&
      (request.settings.jobs > 1 || arguments.value("--jobs") == "auto"))
    return invalid_argument(
        "--jobs: its processes run the engines, and --no-isolate wants them in "
        "this one; leave out one of the two");
  if (request.settings.jobs > 1 && request.program.empty())
    return invalid_argument("--jobs: needs the command as a program");
  if (request.settings.jobs == 1 || request.options.threads > 0)
    return ok_status();
  request.options.threads =
      std::max(omp_get_num_procs() / request.settings.jobs, 1);
  request.words.push_back("--threads");
  request.words.push_back(std::to_string(request.options.threads));
  return ok_status();
}

Status read_isolation(const Arguments& arguments,
                      const Surroundings& surroundings, CheckRequest& request) {
  request.isolate =
      !arguments.flag("--no-isolate") && !surroundings.worker.empty();
  request.isolation.program = surroundings.worker;
  if (!arguments.value("--timeout")) return ok_status();
  if (arguments.flag("--no-isolate"))
    return invalid_argument(
        "--timeout: a call in this process cannot be ended; leave out "
        "--no-isolate");
  const auto seconds =
      whole_number("--timeout", *arguments.value("--timeout"), 1, kMostSeconds);
  if (!seconds.ok()) return seconds.status();
  request.isolation.timeout =
      std::chrono::seconds(static_cast<std::int64_t>(seconds.value()));
  return ok_status();
}

Status read_problems(const Arguments& arguments, CheckRequest& request) {
  const std::vector<std::string> lines = arguments.values("--problem");
  if (lines.empty()) return ok_status();
  request.policy.problems.clear();
  for (const std::string& line : lines) {
    const Result<Problem> problem = Problem::parse(line);
    if (!problem.ok())
      return invalid_argument("--problem '" + line +
                              "': " + problem.status().message());
    request.policy.problems.push_back({problem.value(), {}});
  }
  return ok_status();
}

Status read_checks(const Arguments& arguments, CheckRequest& request) {
  request.options.checks = arguments.values("--check");
  for (const std::string& id : request.options.checks)
    if (find_check(id) == nullptr) return unknown("--check", id, check_ids());
  return ok_status();
}

// An override for every engine, behind all that the policy says.
Status read_coverage(const Arguments& arguments, CheckRequest& request) {
  if (!arguments.value("--coverage")) return ok_status();
  std::vector<std::string_view> known;
  for (Coverage coverage :
       {Coverage::kSampled, Coverage::kEdges, Coverage::kFull}) {
    known.push_back(coverage_name(coverage));
    if (*arguments.value("--coverage") != known.back()) continue;
    SettingsPatch patch;
    patch.coverage = coverage;
    request.policy.patches.push_back(std::move(patch));
    return ok_status();
  }
  return unknown("--coverage", *arguments.value("--coverage"), known);
}

Status read_appearance(const Arguments& arguments,
                       const Surroundings& surroundings,
                       CheckRequest& request) {
  const std::string format = arguments.value("--format").value_or("text");
  request.format = find_report_format(format);
  if (request.format == nullptr)
    return unknown("--format", format, report_format_names());
  request.to_stdout = arguments.value("--output").value_or("-") == "-";
  const std::string color = arguments.value("--color").value_or("auto");
  if (color == "auto") {
    request.color = request.to_stdout && surroundings.out_is_terminal &&
                    !surroundings.no_color;
  } else if (color == "always" || color == "never") {
    request.color = color == "always";
  } else {
    constexpr std::string_view kKnown[] = {"auto", "always", "never"};
    return unknown("--color", color, kKnown);
  }
  request.options.draw_maps = !arguments.flag("--no-map");
  return ok_status();
}

// What fails the run. A warning that fails it is an error in all reports.
Status read_fail_on(const Arguments& arguments, CheckRequest& request) {
  constexpr std::string_view kKnown[] = {"error", "warning", "never"};
  const std::string on = arguments.value("--fail-on").value_or("error");
  request.findings_fail = on != "never";
  if (on == "warning")
    for (SettingsPatch& patch : request.policy.patches)
      for (auto& [check, severity] : patch.severities)
        if (severity == Severity::kWarning) severity = Severity::kError;
  if (on == "warning" || on == "never" || on == "error") return ok_status();
  return unknown("--fail-on", on, kKnown);
}

// Known findings are suppressions of their own.
Status read_baseline(const Arguments& arguments, CheckRequest& request) {
  request.write_baseline = arguments.value("--write-baseline").has_value();
  const auto file = arguments.value("--baseline");
  if (!file) return ok_status();
  Result<std::vector<Suppression>> known = load_baseline(*file);
  if (!known.ok()) return known.status();
  request.baseline = std::move(known.value());
  request.policy.suppressions.insert(request.policy.suppressions.end(),
                                     request.baseline.begin(),
                                     request.baseline.end());
  return ok_status();
}

// Every value but the engines'.
Status read_request(const Arguments& arguments,
                    const Surroundings& surroundings, CheckRequest& request) {
  Status status = read_numbers(arguments, request);
  if (status.ok()) status = read_isolation(arguments, surroundings, request);
  if (status.ok()) status = read_run(arguments, surroundings, request);
  if (status.ok()) status = read_problems(arguments, request);
  if (status.ok()) status = read_checks(arguments, request);
  if (status.ok()) status = read_coverage(arguments, request);
  if (status.ok()) status = read_fail_on(arguments, request);
  if (status.ok()) status = read_baseline(arguments, request);
  request.options.today = surroundings.today;
  if (status.ok()) status = read_appearance(arguments, surroundings, request);
  return status;
}

// kExitPass, or the code to end with.
int open_engines(const Arguments& arguments, CheckRequest& request,
                 std::ostream& err) {
  const std::vector<std::string> specs = arguments.values("--engine");
  if (specs.empty())
    return usage_error(err, "no engine given",
                       "write e.g. --engine builtin:tiled; 'attnguard list "
                       "engines' shows all");
  for (const std::string& spec : specs) {
    Result<Engine> engine = request.isolate
                                ? open_isolated(spec, request.isolation)
                                : open_engine(spec);
    if (engine.ok()) {
      request.engines.push_back(std::move(engine.value()));
      continue;
    }
    usage_error(err, engine.status().message(),
                "'attnguard list engines' shows what there is");
    const StatusCode code = engine.status().code();
    return code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound
               ? kExitUsage
               : kExitEngineError;
  }
  return kExitPass;
}

// One line that is rewritten again and again.
void show_progress(CheckRequest& request, std::ostream& err) {
  request.progress = [&err](const std::string& line) {
    err << "\r\x1b[K" << terminal_text(line) << std::flush;
  };
}

// The arguments that --replay stands for; what is wrong is in `status`.
Arguments replayed(const Arguments& given, std::string& policy_settings,
                   Status& status) {
  if (!given.value("--replay")) return given;
  Result<ReplayRequest> replay = resolve_replay(given);
  status = replay.status();
  if (!replay.ok()) return given;
  policy_settings = replay.value().policy_settings;
  return std::move(replay.value().arguments);
}

int failed(const Status& status, std::ostream& err) {
  usage_error(err, status.message());
  return status.code() == StatusCode::kEngineFailure ? kExitEngineError
                                                     : kExitUsage;
}

// The worst of the runs, where findings do not count.
Verdict verdict_but_findings(std::span<const RunResult> results) {
  std::vector<RunResult> outcomes(results.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    outcomes[i].verdict = verdict_but_findings(results[i]);
  return combine_runs(outcomes);
}

int code_of(const CheckRequest& request, const RunOutcome& outcome) {
  const bool accepted = !request.findings_fail || request.write_baseline;
  return exit_code_of(outcome, accepted ? verdict_but_findings(outcome.results)
                                        : combine_runs(outcome.results));
}

// Both files can be written, before anything runs.
Status open_files(const Arguments& arguments, CheckRequest& request) {
  Status status;
  if (!request.to_stdout)
    status = request.output.open(*arguments.value("--output"), "report");
  if (status.ok() && request.write_baseline)
    status = request.new_baseline.open(*arguments.value("--write-baseline"),
                                       "baseline");
  return status;
}

int run_check(const CommandContext& context) {
  const auto& [given, command_line, out, err, surroundings] = context;
  CheckRequest request;
  std::string saved_settings;
  Status status;
  const Arguments arguments = replayed(given, saved_settings, status);
  if (!status.ok()) return usage_error(err, status.message());
  std::optional<Policy> policy =
      read_policy(arguments.value("--policy"), err, surroundings.folder);
  if (!policy) return kExitUsage;
  request.policy = std::move(*policy);
  request.policy_settings = settings_digest(request.policy);
  if (!saved_settings.empty() && saved_settings != request.policy_settings)
    err << "attnguard: note: the policy has other settings than when the "
           "failure was saved\n";
  status = read_request(arguments, surroundings, request);
  if (!status.ok())
    return usage_error(err, status.message(),
                       "'attnguard check --help' explains the options");
  // Before engines open: some size their thread pools then.
  if (request.options.threads > 0) omp_set_num_threads(request.options.threads);
  const int opened = open_engines(arguments, request, err);
  if (opened != kExitPass) return opened;
  if (surroundings.job_socket >= 0)
    return serve_jobs(surroundings.job_socket, request.engines, request.policy,
                      policy_digest(request.policy, request.options),
                      request.options);
  status = open_files(arguments, request);
  if (!status.ok()) return usage_error(err, status.message());

  if (surroundings.err_is_terminal) show_progress(request, err);
  const Result<RunOutcome> outcome = run_request(request);
  if (surroundings.err_is_terminal) err << "\r\x1b[K" << std::flush;
  if (!outcome.ok()) return failed(outcome.status(), err);
  const std::vector<RunResult>& results = outcome.value().results;
  const int code = code_of(request, outcome.value());
  ReportOptions options = report_options(command_line);
  options.color = request.color;
  options.exit_code = code;
  const std::string report = request.format->render(results, options);
  if (request.to_stdout)
    out << report;
  else
    status = request.output.commit(report);
  if (status.ok() && request.write_baseline)
    status =
        request.new_baseline.commit(baseline_text(results, request.baseline));
  if (status.ok() && request.format->name == "github" &&
      !surroundings.job_summary.empty())
    status = append_job_summary(surroundings.job_summary, results, options);
  if (!status.ok()) return usage_error(err, status.message());
  return code;
}

std::vector<OptionSpec> with_run_options(std::vector<OptionSpec> options) {
  options.insert(options.end(), run_options().begin(), run_options().end());
  return options;
}

}  // namespace

extern const CommandInfo kCheckCommand = {
    .path = "check",
    .summary = "Verify engines and report",
    .operand = {},
    .options = with_run_options(
        {{"--engine", "SPEC",
          "The engine: adapter:engine, or plugin:PATH for your own shared "
          "library; repeat it for several",
          true},
         {"--policy", "FILE",
          "What to check and how strictly; default: attnguard.yaml here or "
          "above, up to the repository's root, else built-in"},
         {"--problem", "LINE",
          "Check this problem instead of the policy's; repeatable", true},
         {"--check", "ID", "Run only this check; repeatable", true},
         {"--seed", "N", "Overrides the policy's seed"},
         {"--threads", "N", "Threads to use; default: all cores"},
         {"--coverage", "sampled|edges|full",
          "Overrides the policy's coverage"},
         {"--baseline", "FILE", "Known findings: only new ones fail"},
         {"--write-baseline", "FILE",
          "Write the findings of this run, which then do not fail it"},
         {"--fail-on", "error|warning|never",
          "Which findings fail the run; default: error. An engine error or a "
          "run without evidence always does"},
         {"--format", "text|json|junit|sarif|github|markdown|html",
          "Of the report"},
         {"--output", "FILE",
          "Where the report goes; default: standard output"},
         {"--color", "auto|always|never", "Of the text report"},
         {"--no-map", nullptr,
          "Neither shrink failures nor draw the influence map nor diagnose"},
         {"--timeout", "SECONDS",
          "Longest time of one call of an engine; default: 60"},
         {"--no-isolate", nullptr,
          "Run engines in this process, e.g. under a debugger: a crash ends "
          "the run"}}),
    .run = run_check,
};

}  // namespace attnguard
