// What a policy comes to for one engine, value by value, with the place that
// each comes from.
#ifndef ATTNGUARD_GUARD_POLICY_RESOLVED_VALUES_H_
#define ATTNGUARD_GUARD_POLICY_RESOLVED_VALUES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/policy.h"

namespace attnguard {

struct ResolvedValue {
  std::string key;       // "seed", "coverage", "checks", "tolerances"
  std::string check;     // for the last two
  std::string dtype;     // for tolerances
  std::string value;     // as in a policy
  SourceLocation place;  // without a file: nobody wrote it

  // "tolerances.row-sum.fp16"
  std::string path() const;
};

// All of them, in the order of a policy: checks as in `check_ids`, dtypes as
// in all_dtypes(). `engine` empty: an engine that only "*" fits.
std::vector<ResolvedValue> resolved_values(
    const Policy& policy, std::string_view engine,
    std::span<const std::string_view> check_ids);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_RESOLVED_VALUES_H_
