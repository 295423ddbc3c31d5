// Results of models in tests.
#ifndef ATTNGUARD_TESTS_SUPPORT_MODEL_RESULTS_H_
#define ATTNGUARD_TESTS_SUPPORT_MODEL_RESULTS_H_

#include <string>
#include <vector>

#include "guard/model/verify_model.h"

namespace attnguard {

// The checks that came to this verdict.
inline std::vector<std::string> with_verdict(const ModelResult& result,
                                             Verdict verdict) {
  std::vector<std::string> ids;
  for (const CheckResult& check : result.checks)
    if (check.verdict == verdict) ids.push_back(check.check);
  return ids;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_MODEL_RESULTS_H_
