// How the command says that it was asked for something it cannot do.
#ifndef ATTNGUARD_CI_USAGE_H_
#define ATTNGUARD_CI_USAGE_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "guard/base/status.h"
#include "guard/policy/policy.h"

namespace attnguard {

// The most that options for seconds and for threads take, which is more than
// anyone waits for or has.
inline constexpr std::uint64_t kMostSeconds = 1000000;
inline constexpr std::uint64_t kMostThreads = 4096;

// Prints "attnguard: error: message" and, when given, a hint on a line of its
// own. Returns kExitUsage.
int usage_error(std::ostream& err, std::string_view message,
                std::string_view hint = "");

// The value of an option; kInvalidArgument names it and what was expected.
Result<std::uint64_t> whole_number(std::string_view option,
                                   std::string_view text, std::uint64_t lowest,
                                   std::uint64_t highest);

// The policy of the file; "built-in" is no file. Without a path the file is
// searched for from `folder` upwards, see find_policy_file, and there may be
// none. nullopt: the diagnostics were printed to `err`.
std::optional<Policy> read_policy(const std::optional<std::string>& path,
                                  std::ostream& err,
                                  const std::string& folder = "");

// attnguard.yaml in the folder or above it, no further than the root of the
// repository (the folder with .git); outside of a repository only in the
// folder itself. Empty when there is none, or no folder.
std::string find_policy_file(const std::string& folder);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_USAGE_H_
