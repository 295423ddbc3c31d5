// Findings that somebody accepted, by the policy's suppressions or by a
// baseline: they stay in the result, say why they are accepted, and do not
// fail the run.
#ifndef ATTNGUARD_GUARD_POLICY_SUPPRESS_H_
#define ATTNGUARD_GUARD_POLICY_SUPPRESS_H_

#include <span>

#include "guard/base/date.h"
#include "guard/finding/result.h"
#include "guard/policy/policy.h"

namespace attnguard {

// Marks what is accepted in the checks of one problem, by kind of finding: the
// first suppression that fits takes it. Those that are expired by `today`
// accept nothing. The verdict of the problem is left to the caller.
void suppress_findings(std::span<const Suppression> suppressions,
                       const Date& today, ProblemResult& result);

// Fills run.suppressions once all problems are judged. An expired suppression
// that was reached makes the run a violation, and the note says so.
void settle_suppressions(std::span<const Suppression> suppressions,
                         const Date& today, RunResult& run);

// The kinds of findings, for the parser and the schema.
std::span<const std::string_view> finding_kind_names();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_SUPPRESS_H_
