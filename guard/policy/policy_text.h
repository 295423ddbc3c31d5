// Pieces of canonical YAML, for whatever prints policies.
#ifndef ATTNGUARD_GUARD_POLICY_POLICY_TEXT_H_
#define ATTNGUARD_GUARD_POLICY_POLICY_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "guard/policy/policy.h"

namespace attnguard {

// In double quotes, with escapes for what no file should hold.
std::string quoted_yaml(std::string_view text);

// The entries of `problems`, grouped back into products, each behind "  - ".
std::string problem_entries_text(std::span<const PolicyProblem> problems);

std::string tolerance_text(const Tolerance& tolerance);

// One entry of `suppressions`, behind "  - ".
std::string suppression_entry_text(const Suppression& suppression);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_POLICY_TEXT_H_
