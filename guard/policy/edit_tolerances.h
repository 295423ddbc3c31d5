// Writes tolerances into the text of a policy: its comments, its order and
// whatever else it says stay as they are.
#ifndef ATTNGUARD_GUARD_POLICY_EDIT_TOLERANCES_H_
#define ATTNGUARD_GUARD_POLICY_EDIT_TOLERANCES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/policy/policy.h"

namespace attnguard {

struct NewTolerance {
  std::string check;
  Dtype dtype = Dtype::kFp32;
  Tolerance tolerance;
  std::vector<std::string> comments = {};  // Lines, without '#'.
};

// The text with these tolerances below `engines`, in the entry whose pattern
// is the engine's name; `heading` stands above them as comments. Tolerances
// that the entry has already stay where these do not replace them.
//
// The result is parsed again: kInvalidArgument when it does not mean what the
// text meant, and those tolerances beside. A text that has no `engines` and
// extends nothing gets a line `extends: built-in`, since its `engines` would
// otherwise replace the built-in ones.
Result<std::string> edit_tolerances(
    std::string_view text, std::string_view name, const std::string& engine,
    std::span<const std::string> heading,
    std::span<const NewTolerance> tolerances,
    std::span<const std::string_view> check_ids);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_EDIT_TOLERANCES_H_
