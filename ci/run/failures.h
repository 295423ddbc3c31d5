// Failures that are kept: a small text file each, which a later run replays.
#ifndef ATTNGUARD_CI_RUN_FAILURES_H_
#define ATTNGUARD_CI_RUN_FAILURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "guard/base/status.h"
#include "guard/finding/result.h"
#include "guard/policy/policy.h"

namespace attnguard {

// All that decides what a replay sees. The file has a line "name: value" for
// each.
struct SavedFailure {
  std::string engine;               // The specification.
  std::string problem;              // The smallest failing problem's line.
  std::vector<std::string> checks;  // Those that failed; empty: all.
  std::uint64_t seed = 1;
  std::string coverage;         // "edges"
  std::string policy;           // The policy's file; empty: built-in.
  std::string policy_settings;  // settings_digest of it.
  std::string found_on;         // The problem that failed first.

  std::string text() const;
  static Result<SavedFailure> parse(const std::string& text);
};

// Of everything that a policy says but its problems and its seed.
std::string settings_digest(const Policy& policy);

// One for each violation and engine error of the run, the smallest cases that
// several problems share only once.
std::vector<SavedFailure> failures_of(const RunResult& run,
                                      const Settings& settings,
                                      const std::string& policy_settings);

// Writes each to a file of its own in the folder, which is made if need be;
// one that is there already stays as it is.
Status save_failures(const std::string& folder,
                     const std::vector<SavedFailure>& failures);

// Those of the engine in the folder, by file name; none if there is no folder.
// A file that is none of ours is an error: it names the file.
Result<std::vector<SavedFailure>> load_failures(const std::string& folder,
                                                const std::string& engine);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_FAILURES_H_
