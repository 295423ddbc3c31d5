// The findings of one run, grouped by check: what is wrong in words, then a
// table of the first few.
#ifndef ATTNGUARD_GUARD_REPORT_TEXT_FINDINGS_H_
#define ATTNGUARD_GUARD_REPORT_TEXT_FINDINGS_H_

#include <string>

#include "guard/finding/result.h"
#include "guard/report/terminal.h"

namespace attnguard {

// Empty when there are no findings. Problems are numbered from 1, in the
// order of the run.
std::string draw_findings(const RunResult& run, const Painter& paint);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_TEXT_FINDINGS_H_
