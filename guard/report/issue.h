// What reports for code hosts list: one issue for each thing that is wrong,
// wherever in the result it stands.
#ifndef ATTNGUARD_GUARD_REPORT_ISSUE_H_
#define ATTNGUARD_GUARD_REPORT_ISSUE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/finding/result.h"

namespace attnguard {

// The rules of what is no check's finding.
inline constexpr std::string_view kEngineErrorRule = "engine-error";
inline constexpr std::string_view kInconclusiveRule = "inconclusive";
inline constexpr std::string_view kExpiredRule = "expired-suppression";

// Points into the results, which must outlive it.
struct Issue {
  const RunResult* run = nullptr;
  const ProblemResult* problem = nullptr;  // nullptr: of the run as a whole.
  const CheckResult* check = nullptr;      // nullptr: no check's finding.
  const Finding* first = nullptr;          // nullptr without findings.
  std::string rule;  // The check's id, or one of those above.
  std::string kind;  // finding_kind_name(); empty without findings.
  bool warning = false;
  std::string suppressed = {};  // Why it is accepted; empty: it is not.
  std::int64_t count = 1;       // Findings of the kind, at least.
};

// One issue per problem, check and kind of finding; one for each problem
// without evidence or whose engine failed; one for a run that did not pass and
// says nothing else. In the order of the results.
std::vector<Issue> issues_of(std::span<const RunResult> results);

// The same, the worst first: errors of engines, violations, what is
// inconclusive, warnings; among equals those of more findings.
// What nobody accepted.
std::vector<Issue> not_suppressed(std::vector<Issue> issues);

std::vector<Issue> worst_first(std::vector<Issue> issues);

// What is wrong in one or two sentences, without the replay line.
std::string issue_text(const Issue& issue);

// A number, as 16 hexadecimal digits, that stays the same as long as check,
// kind of finding, engine and problem do, whatever the measured values are.
std::string issue_fingerprint(const Issue& issue);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_ISSUE_H_
