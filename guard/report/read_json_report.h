// The JSON report, read back: what `attnguard merge` joins, and what the
// processes of `attnguard check --jobs` hand over.
#ifndef ATTNGUARD_GUARD_REPORT_READ_JSON_REPORT_H_
#define ATTNGUARD_GUARD_REPORT_READ_JSON_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/finding/result.h"

namespace attnguard {

struct JsonReport {
  std::string version;       // Of the tool that wrote it.
  std::string command_line;  // What produced it.
  std::vector<RunResult> runs;
};

// Rendering the runs as JSON gives the same text again. Fields that this
// version does not know are passed over. kInvalidArgument says what is wrong
// and where: "runs[0].problems[3].verdict: unknown 'passed'".
Result<JsonReport> read_json_report(std::string_view text);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_READ_JSON_REPORT_H_
