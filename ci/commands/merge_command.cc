// `attnguard merge`: the JSON reports of all shards of a run as one report.
#include <algorithm>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ci/command_table.h"
#include "ci/output_file.h"
#include "ci/report_options.h"
#include "ci/run/merge.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

int code_of(std::vector<RunResult> runs, bool findings_fail) {
  if (!findings_fail)
    for (RunResult& run : runs) run.verdict = verdict_but_findings(run);
  return exit_code(combine_runs(runs));
}

int run_merge(const CommandContext& context) {
  const Arguments& arguments = context.arguments;
  std::ostream& err = context.err;
  if (arguments.operands.empty())
    return usage_error(err, "no report given",
                       "write e.g. attnguard merge shard-1.json shard-2.json");
  const std::string name = arguments.value("--format").value_or("text");
  const ReportFormat* format = find_report_format(name);
  if (format == nullptr)
    return usage_error(err, "--format: unknown '" + name + "'" +
                                suggestion(name, report_format_names()));
  const std::string fail_on = arguments.value("--fail-on").value_or("error");
  constexpr std::string_view kFailOn[] = {"error", "never"};
  if (std::ranges::find(kFailOn, fail_on) == std::end(kFailOn))
    return usage_error(err, "--fail-on: unknown '" + fail_on + "'" +
                                suggestion(fail_on, kFailOn));
  const Result<JsonReport> merged = merge_reports(arguments.operands);
  if (!merged.ok()) return usage_error(err, merged.status().message());
  ReportOptions options = report_options(context.command_line);
  options.version = merged.value().version;
  const int code = code_of(merged.value().runs, fail_on != "never");
  options.exit_code = code;
  const std::string report = format->render(merged.value().runs, options);
  const std::string path = arguments.value("--output").value_or("-");
  if (path == "-") {
    context.out << report;
  } else {
    OutputFile output;
    Status status = output.open(path, "report");
    if (status.ok()) status = output.commit(report);
    if (!status.ok()) return usage_error(err, status.message());
  }
  return code;
}

}  // namespace

extern const CommandInfo kMergeCommand = {
    .path = "merge",
    .summary = "Join the JSON reports of all shards of a run",
    .operand = {"report", "JSON reports of 'attnguard check --shard'", true},
    .options = {{"--format", "text|json|junit|sarif|github|markdown|html",
                 "Of the joint report"},
                {"--fail-on", "error|never",
                 "Which findings fail; default: error. An engine error or a "
                 "run without evidence always does"},
                {"--output", "FILE",
                 "Where the report goes; default: standard output"}},
    .run = run_merge,
};

}  // namespace attnguard
