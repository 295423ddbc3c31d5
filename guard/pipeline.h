// The whole flow, in one place; start reading here.
//
//   problem -> checks declare probes -> plan -> execute -> checks judge
//           -> findings -> smallest failing case, influence map and diagnosis
//           -> result
//
// A program that links the library usually needs only this header and
// guard/engine/engine.h:
//
//   attnguard::Engine engine{.name = "mine", .run = my_attention};
//   attnguard::RunOptions options;
//   attnguard::RunResult result =
//       attnguard::verify(engine, attnguard::default_policy(), options);
//   if (result.verdict != attnguard::Verdict::kPass) ...
#ifndef ATTNGUARD_GUARD_PIPELINE_H_
#define ATTNGUARD_GUARD_PIPELINE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guard/base/date.h"
#include "guard/engine/engine.h"
#include "guard/finding/result.h"
#include "guard/policy/policy.h"

namespace attnguard {

struct RunOptions {
  std::vector<std::string> checks;  // Only these ids; empty: all.
  int threads = 0;  // OpenMP threads of the guard and of engines that ask
                    // OpenMP; 0: the default. Findings do not depend on it.
  bool draw_maps = true;  // Shrink failures and draw the influence map.

  // Say what failures behave like; only with draw_maps. Runs the engine on
  // further problems that it says it supports, not on the policy's alone.
  bool diagnose = true;

  // The longest time to look for a smaller problem on which a failure shows.
  double shrink_seconds = 5;

  // Asked before each problem: why it and all later ones are left unchecked,
  // e.g. "the time limit is over"; empty: go on. They are in the result, as
  // inconclusive. So is a problem in which the engine failed meanwhile: it may
  // refuse calls to end the run at once. Empty: none.
  std::function<std::string()> stop;

  // The day on which suppressions are judged; left out: today, in UTC.
  std::optional<Date> today = std::nullopt;

  // Called before each problem, for progress: index from 0, and the total.
  std::function<void(std::size_t index, std::size_t total)> progress;
};

// The day on which suppressions are judged.
Date today_of(const RunOptions& options);

// Runs every problem of the policy. Never throws; whatever goes wrong is in
// the result. An unknown check id makes the result inconclusive and says so.
RunResult verify(const Engine& engine, const Policy& policy,
                 const RunOptions& options = {});

// One problem, with the settings already resolved for this engine.
ProblemResult verify_problem(const Engine& engine, const Problem& problem,
                             const Settings& settings,
                             const RunOptions& options = {});

// The built-in policy.
const Policy& default_policy();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PIPELINE_H_
