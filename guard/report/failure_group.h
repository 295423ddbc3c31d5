// Hundreds of problems may fail for one cause: the failures of a run, grouped
// by what fails.
#ifndef ATTNGUARD_GUARD_REPORT_FAILURE_GROUP_H_
#define ATTNGUARD_GUARD_REPORT_FAILURE_GROUP_H_

#include <string>
#include <vector>

#include "guard/finding/result.h"

namespace attnguard {

// Points into the run, which must outlive it.
struct FailureGroup {
  Verdict verdict = Verdict::kViolation;  // kPass: only warnings.
  std::vector<std::string> checks;        // Those that fail, or lack evidence.
  std::vector<const ProblemResult*> problems;

  // The one to show: that with the smallest influence map, else the first that
  // was diagnosed, else the first.
  const ProblemResult* shown = nullptr;

  // "future-influence, row-sum"; what stands in for it where no check fails.
  std::string title() const;
};

// Problems with the same verdict and the same failing checks are one group.
// Violations come first, then engine errors, what is inconclusive, and
// warnings; larger groups before smaller ones.
std::vector<FailureGroup> failure_groups(const RunResult& run);

// True for what a report lists: violations, engine errors, what is inconclusive
// and warnings.
bool is_listed(const ProblemResult& problem);

// The problem's place as "policy.yaml:14:5"; empty when it has none.
std::string place_name(const SourceLocation& location);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_FAILURE_GROUP_H_
