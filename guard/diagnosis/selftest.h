// The guard on itself: every known defect must be found and named, and no
// correct computation may be accused.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_SELFTEST_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_SELFTEST_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "guard/defect/defect.h"
#include "guard/engine/engine.h"
#include "guard/finding/result.h"

namespace attnguard {

// A defect on the problems on which it shows.
struct DefectTrial {
  const Defect* defect = nullptr;
  int problems = 0;
  int detected = 0;                   // Those with a violation.
  std::vector<std::string> found_by;  // Ids of the checks that found it on
                                      // one of them, in the table's order.

  // Place of the defect in the diagnosis, the worst of its problems: 1 when
  // nothing else explains the engine as well. Ties count against it: with
  // two others that cannot be told from it, it is 3. 0: not among the
  // explanations. (The engine that is the defect reproduces itself bit for
  // bit, so what is measured is whether others do too.)
  int rank = 0;

  // Defects that could not be told from it on some problem.
  std::vector<std::string> tied_with;

  std::string note;  // What went wrong, for people; empty when nothing did.

  bool is_detected() const { return detected == problems; }
};

// A problem on which a correct computation was not passed.
struct FalseAlarm {
  std::string engine;
  std::string problem;
  Verdict verdict = Verdict::kViolation;  // Or an engine error.
  std::string message;                    // The first finding.
};

// A correct computation on problems: nothing may be found.
struct CleanTrial {
  std::string engine;
  std::int64_t problems = 0;
  std::int64_t passed = 0;
  std::int64_t not_judged = 0;  // Not applicable, unsupported or no evidence.
  std::vector<FalseAlarm> alarms;
};

struct SelftestResult {
  std::vector<std::string> checks;  // The matrix's columns: check ids.
  std::vector<DefectTrial> defects;
  std::vector<CleanTrial> hides;    // Defects where they cannot show.
  std::vector<CleanTrial> legal;    // Legal variants, one each.
  std::vector<CleanTrial> engines;  // Correct engines on random problems.
  std::uint64_t seed = 0;
  std::int64_t random_problems = 0;

  std::int64_t detected() const;
  std::int64_t ranked_within(int rank) const;  // Defects of rank 1 to `rank`.
  std::int64_t alarms() const;

  // Pairs of defects that no problem tried could tell apart, by name.
  std::vector<std::pair<std::string, std::string>> indistinguishable() const;

  // All are detected, and there is no alarm. Nothing tested is no pass.
  bool ok() const;
};

struct SelftestOptions {
  std::uint64_t seed = 1;
  std::int64_t random_problems = 300;  // Per correct engine.

  // Called before each engine, for progress.
  std::function<void(const std::string& engine)> progress;
};

// What a trial expects.
enum class TrialKind {
  kDefect,  // Something to be found and named: with a diagnosis.
  kHidden,  // A defect where it cannot show: only by the checks that judge the
            // problem's own outputs; at other shapes and scores it may.
  kClean,   // Nothing to be found by any check.
};

// How problems are verified: verify_problem with the settings of a policy.
using Verify = std::function<ProblemResult(
    const Engine& engine, const Problem& problem, TrialKind trial)>;

// `check_ids`: the matrix's columns. `correct_engines` run on the random
// problems.
SelftestResult run_selftest(const Verify& verify,
                            std::span<const std::string_view> check_ids,
                            std::span<const Engine> correct_engines,
                            const SelftestOptions& options);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_SELFTEST_H_
