// What the policy tests share.
#ifndef ATTNGUARD_TESTS_POLICY_POLICY_TESTING_H_
#define ATTNGUARD_TESTS_POLICY_POLICY_TESTING_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "guard/check/check.h"
#include "guard/policy/policy_yaml.h"

namespace attnguard {

inline constexpr std::array<std::string_view, 7> kTestChecks = {
    "future-influence", "row-sum", "visibility", "reference",
    "finite",           "memory",  "repeatable"};

inline PolicyParse parse(std::string_view text) {
  return parse_policy(text, "policy.yaml", kTestChecks);
}

// The built-in policy names checks that there are, of which kTestChecks has
// only some.
inline PolicyParse parse_built_in() {
  return parse_policy(default_policy_text(), "built-in", check_ids());
}

// The diagnostics as "line:column message".
inline std::vector<std::string> errors_of(const PolicyParse& result) {
  std::vector<std::string> errors;
  for (const PolicyDiagnostic& diagnostic : result.diagnostics)
    errors.push_back(std::to_string(diagnostic.location.line) + ':' +
                     std::to_string(diagnostic.location.column) + ' ' +
                     diagnostic.message);
  return errors;
}

inline std::vector<std::string> errors(std::string_view text) {
  return errors_of(parse(text));
}

inline std::vector<std::string> problem_lines(const Policy& policy) {
  std::vector<std::string> lines;
  for (const PolicyProblem& problem : policy.problems)
    lines.push_back(problem.problem.text());
  return lines;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_POLICY_POLICY_TESTING_H_
