#include "guard/diagnosis/quota.h"

namespace attnguard {

std::vector<std::string> failing_checks(const ProblemResult& result) {
  std::vector<std::string> ids;
  for (const CheckResult& check : result.checks)
    if (check.verdict == Verdict::kViolation && !check.suppressed())
      ids.push_back(check.check);
  return ids;
}

bool DiagnosisQuota::wants(const ProblemResult& result) {
  const bool is_new = seen_.insert(failing_checks(result)).second;
  return is_new || ++repeated_ <= kMostRepeated;
}

}  // namespace attnguard
