// The reports of all shards of a run, as one.
#ifndef ATTNGUARD_CI_RUN_MERGE_H_
#define ATTNGUARD_CI_RUN_MERGE_H_

#include <string>
#include <vector>

#include "guard/base/status.h"
#include "guard/report/read_json_report.h"

namespace attnguard {

// Joins the JSON reports in these files, in any order. kInvalidArgument: a
// shard is missing or there twice, a problem is, or they are of different
// versions, engines, policies, seeds or checks; the message names the file.
Result<JsonReport> merge_reports(const std::vector<std::string>& paths);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_MERGE_H_
