// `attnguard merge`: the JSON reports of all shards of a run as one report.
#include <ostream>

#include "ci/command_table.h"
#include "ci/output_file.h"
#include "ci/report_options.h"
#include "ci/run/merge.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

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
  const Result<JsonReport> merged = merge_reports(arguments.operands);
  if (!merged.ok()) return usage_error(err, merged.status().message());
  ReportOptions options = report_options(context.command_line);
  options.version = merged.value().version;
  const std::string report = format->render(merged.value().runs, options);
  const std::string path = arguments.value("--output").value_or("-");
  if (path == "-") {
    context.out << report;
  } else {
    OutputFile output;
    Status status = output.open(path);
    if (status.ok()) status = output.commit(report);
    if (!status.ok()) return usage_error(err, status.message());
  }
  return exit_code(combine_runs(merged.value().runs));
}

}  // namespace

extern const CommandInfo kMergeCommand = {
    .path = "merge",
    .summary = "Join the JSON reports of all shards of a run",
    .operand = {"report", "JSON reports of 'attnguard check --shard'", true},
    .options = {{"--format", "text|json|junit|sarif|github|markdown|html",
                 "Of the joint report"},
                {"--output", "FILE",
                 "Where the report goes; default: standard output"}},
    .run = run_merge,
};

}  // namespace attnguard
