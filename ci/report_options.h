// What a report knows of the command beside the results.
#ifndef ATTNGUARD_CI_REPORT_OPTIONS_H_
#define ATTNGUARD_CI_REPORT_OPTIONS_H_

#include <span>
#include <string>

#include "guard/base/status.h"
#include "guard/report/report.h"

namespace attnguard {

// Version, command line, the pages of all checks, and when and where it is.
ReportOptions report_options(const std::string& command_line);

// Appends the Markdown report to GitHub's job summary, the file that
// $GITHUB_STEP_SUMMARY names. GitHub refuses more than 1 MiB of a step: what
// does not fit is cut off, and the text says so.
Status append_job_summary(const std::string& path,
                          std::span<const RunResult> results,
                          const ReportOptions& options);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_REPORT_OPTIONS_H_
