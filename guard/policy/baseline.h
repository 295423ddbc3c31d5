// A baseline: the findings that were known when it was written. A run that is
// given one fails only for new findings.
//
//   {"attnguard_baseline": 1,
//    "findings": [
//      {"engine": "mine", "check": "row-sum", "kind": "mass",
//       "problem": "batch=1 ..."}]}
//
// A finding is told by engine, check, kind and problem line. Rows, keys and
// numbers are left out: they change with every rewrite of a kernel.
#ifndef ATTNGUARD_GUARD_POLICY_BASELINE_H_
#define ATTNGUARD_GUARD_POLICY_BASELINE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/finding/result.h"
#include "guard/policy/policy.h"

namespace attnguard {

// As suppressions with `baseline` set, which accept exactly what it names.
// kInvalidArgument: the message names the file and the entry.
Result<std::vector<Suppression>> parse_baseline(std::string_view text,
                                                const std::string& name);

// Reads the file first. kIo: it cannot be read.
Result<std::vector<Suppression>> load_baseline(const std::string& path);

// All findings of the runs but those that the policy suppresses, and of `old`
// what the runs did not judge. Sorted, each once; ends with a line break.
std::string baseline_text(std::span<const RunResult> runs,
                          std::span<const Suppression> old);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_BASELINE_H_
