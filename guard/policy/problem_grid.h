// Expands the `problems` of a policy: each entry is a map from problem fields
// to a value or a list of values, and stands for the product of its lists.
#ifndef ATTNGUARD_GUARD_POLICY_PROBLEM_GRID_H_
#define ATTNGUARD_GUARD_POLICY_PROBLEM_GRID_H_

#include <vector>

#include "guard/policy/policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

// `node` is the value of `problems`. Combinations come in the order of
// all_problem_fields(), the last field varying fastest. Errors go to the sink;
// what is returned then is incomplete.
std::vector<PolicyProblem> expand_problems(const YamlNode& node,
                                           const SourceText& source,
                                           DiagnosticSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_PROBLEM_GRID_H_
