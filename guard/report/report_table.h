// The report formats, one per file in this folder. report_table.cc lists them.
#ifndef ATTNGUARD_GUARD_REPORT_REPORT_TABLE_H_
#define ATTNGUARD_GUARD_REPORT_REPORT_TABLE_H_

#include "guard/report/report.h"

namespace attnguard {

extern const ReportFormat kReportText;
extern const ReportFormat kReportJson;
extern const ReportFormat kReportJunit;
extern const ReportFormat kReportSarif;
extern const ReportFormat kReportGithub;
extern const ReportFormat kReportMarkdown;
extern const ReportFormat kReportHtml;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_REPORT_TABLE_H_
