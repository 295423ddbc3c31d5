#include "guard/report/report_table.h"

#include <array>

namespace attnguard {

std::span<const ReportFormat* const> all_report_formats() {
  static constexpr std::array kFormats = {
      &kReportText,   &kReportJson,     &kReportJunit, &kReportSarif,
      &kReportGithub, &kReportMarkdown, &kReportHtml,
  };
  return kFormats;
}

const ReportFormat* find_report_format(std::string_view name) {
  for (const ReportFormat* format : all_report_formats())
    if (format->name == name) return format;
  return nullptr;
}

std::vector<std::string_view> report_format_names() {
  std::vector<std::string_view> names;
  for (const ReportFormat* format : all_report_formats())
    names.push_back(format->name);
  return names;
}

}  // namespace attnguard
