// `attnguard check --replay`: a failure again, exactly as it was.
#ifndef ATTNGUARD_CI_RUN_REPLAY_H_
#define ATTNGUARD_CI_RUN_REPLAY_H_

#include <string>
#include <vector>

#include "ci/arguments.h"
#include "guard/base/status.h"

namespace attnguard {

struct ReplayRequest {
  Arguments arguments;          // In place of those that were given.
  std::string policy_settings;  // Of a saved failure: settings_digest; or "".
};

// What --replay names is the line that reports print, "attnguard check ...", or
// a file of --save-failures. Further options add to it or take the place of its
// own, such as --engine to try a new build. kInvalidArgument: it is neither, or
// a problem, seed, check or coverage is given beside it.
Result<ReplayRequest> resolve_replay(const Arguments& given);

// Splits a line into words as a POSIX shell does: blanks, '...', "..." and \.
// kInvalidArgument: a quote is not closed.
Result<std::vector<std::string>> shell_words(const std::string& line);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_REPLAY_H_
