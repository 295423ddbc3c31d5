// Findings that are accepted, and acceptances that fit nothing any more.
#ifndef ATTNGUARD_GUARD_REPORT_TEXT_SUPPRESSIONS_H_
#define ATTNGUARD_GUARD_REPORT_TEXT_SUPPRESSIONS_H_

#include <span>
#include <string>

#include "guard/finding/result.h"
#include "guard/report/terminal.h"

namespace attnguard {

// What was suppressed in one run, by check, kind and reason; empty when
// nothing was.
std::string draw_suppressed(const RunResult& run, const Painter& paint);

// Suppressions of the policy, and entries of a baseline, for which no run
// found anything, and expired ones that no run reached; empty when there are
// none.
std::string draw_unused_suppressions(std::span<const RunResult> results,
                                     const Painter& paint);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_TEXT_SUPPRESSIONS_H_
