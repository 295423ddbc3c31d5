// A report is a pure function of finished results to a text: it opens no file
// and asks nothing of the machine, so that the same results always give the
// same bytes.
//
// Adding one: a file in this folder that defines a ReportFormat, a line in
// report_table.h and one in report_table.cc. The command's --format, `list
// formats` and the golden-output test read the table.
#ifndef ATTNGUARD_GUARD_REPORT_REPORT_H_
#define ATTNGUARD_GUARD_REPORT_REPORT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/finding/result.h"

namespace attnguard {

// What a check sees, in words, for reports that explain it: CheckInfo's texts,
// which a report does not know.
struct RuleText {
  std::string_view id;           // "row-sum"
  std::string_view summary;      // One line.
  std::string_view explanation;  // The page that `attnguard explain` prints.
};

struct ReportOptions {
  bool color = false;        // ANSI colours; only formats for people use it.
  std::string version;       // "0.1.0"; left out when empty.
  std::string command_line;  // What produced the results; may be empty.

  // What the command ends with, where that is not the verdict's own code.
  std::optional<int> exit_code = std::nullopt;

  // Of every check there is; a check without one is named by its id alone.
  std::span<const RuleText> rules;

  // When and where the run was: "2026-01-31T12:00:00" (UTC) and the machine's
  // name. Left out when empty.
  std::string timestamp;
  std::string hostname;
};

struct ReportFormat {
  std::string_view name;     // As in --format: "text".
  std::string_view summary;  // One line.

  // `results` holds one run per engine, in the order they were asked for.
  // Whatever the names and messages hold - quotes, markup, control
  // characters, invalid UTF-8 - the text is well-formed. Never throws, but
  // for want of memory.
  std::string (*render)(std::span<const RunResult> results,
                        const ReportOptions& options);
};

// Every format, in the order they are listed to users.
std::span<const ReportFormat* const> all_report_formats();

// nullptr when there is no format of that name: it never falls back.
const ReportFormat* find_report_format(std::string_view name);

// The names of all_report_formats(), for suggestions.
std::vector<std::string_view> report_format_names();

// The verdict of several runs: a violation outranks an engine error, which
// outranks inconclusive. No runs at all are inconclusive.
Verdict combine_runs(std::span<const RunResult> results);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_REPORT_H_
