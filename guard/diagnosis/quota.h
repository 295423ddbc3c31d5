// Which violations of a run are diagnosed.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_QUOTA_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_QUOTA_H_

#include <set>
#include <string>
#include <vector>

#include "guard/finding/result.h"

namespace attnguard {

// The ids of the checks that found something that nobody accepted, in the
// order of reports.
std::vector<std::string> failing_checks(const ProblemResult& result);

// Hundreds of problems may fail for one cause. Diagnosed are the first
// violations of a run, and later ones in which another set of checks fails.
class DiagnosisQuota {
 public:
  static constexpr int kMostRepeated = 8;

  // Asked once for each violation, in the order of the policy.
  bool wants(const ProblemResult& result);

 private:
  std::set<std::vector<std::string>> seen_;  // Sets of failing checks.
  int repeated_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_QUOTA_H_
