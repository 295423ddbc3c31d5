// How `attnguard check` goes through its problems: which of them, how many at
// a time, how long, and what becomes of those that are left.
#ifndef ATTNGUARD_CI_RUN_RUN_H_
#define ATTNGUARD_CI_RUN_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ci/command.h"
#include "ci/run/shards.h"
#include "guard/base/status.h"
#include "guard/engine/engine.h"
#include "guard/pipeline.h"
#include "guard/policy/policy.h"

namespace attnguard {

// The options of `check` that are about the run as a whole.
const std::vector<OptionSpec>& run_options();

// Their values.
struct RunSettings {
  ShardOfRun shard;
  MeasuredCosts costs;
  int jobs = 1;
  std::optional<std::int64_t> time_limit;  // seconds
  std::optional<std::int64_t> max_memory;  // bytes
  double most_unchecked = 0;               // percent
  std::string failures;                    // A folder; empty: none.
};

// kInvalidArgument names the option and what was expected.
Result<RunSettings> read_run_settings(const Arguments& arguments);

// What is run. The problems are the whole policy's, whatever the shard.
struct RunRequest {
  Policy policy;
  std::vector<Engine> engines;
  RunOptions options;
  RunSettings settings;
  std::string policy_settings;  // settings_digest, before overrides.

  // For --jobs: the program, and the words behind "check".
  std::string program;
  std::vector<std::string> words;

  bool catch_signals = false;
  std::function<void(const std::string&)> progress;  // One line; may be empty.
};

// Tells reports of the same policy, problems and checks from others.
std::string policy_digest(const Policy& policy, const RunOptions& options);

struct RunOutcome {
  std::vector<RunResult> results;  // One for each engine.
  int signal = 0;                  // That ended the run early; 0: none did.
};

// An error says what kept the run from starting, or from keeping its failures.
Result<RunOutcome> run_request(RunRequest& request);

// The code of the verdict on the results; where a signal ended a run that had
// found nothing, 128 and the signal's number.
int exit_code_of(const RunOutcome& outcome, Verdict verdict);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_RUN_H_
