// The finished result of a run: what every report is a function of.
#ifndef ATTNGUARD_GUARD_FINDING_RESULT_H_
#define ATTNGUARD_GUARD_FINDING_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/base/source_location.h"
#include "guard/finding/diagnosis.h"
#include "guard/finding/finding.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Which inputs move which rows of one (batch, head), measured by perturbing
// one token at a time. cells[row][column] is one of:
//   '#' moves, and may        '.' does not move, and must not
//   'X' moves, and must not   'o' does not move, and should
struct InfluenceMap {
  std::string problem;  // The problem line it was measured on.
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t first_row = 0;     // q_index of cells[0]
  std::int64_t first_column = 0;  // kv_index of cells[.][0]
  std::vector<std::string> cells;
};

struct ProblemResult {
  Problem problem;
  std::string problem_line;  // problem.text()
  SourceLocation location;   // Where the policy asks for it; may be empty.
  std::int64_t number = 0;   // Its place in the policy, from 1; 0: in none.

  // Left out: the note says why. The verdict is then kInconclusive, or
  // kNotApplicable where the run may leave it out, and no count of verdicts
  // has it.
  bool unchecked = false;

  Verdict verdict = Verdict::kInconclusive;
  std::string note;  // Why unsupported, the engine's error, ...
  std::int64_t engine_calls = 0;
  double engine_seconds = 0;  // Inside the engine.
  double guard_seconds = 0;   // Everything else.
  std::vector<CheckResult> checks;
  std::string smallest_failing;  // Problem line of a violation; the
                                 // problem itself when nothing smaller fails.
  std::optional<InfluenceMap> map;
  std::optional<Diagnosis> diagnosis;  // Of a violation; not of all when many
                                       // problems of a run fail alike.
  std::string replay;  // The command that reproduces the finding.
};

// The part of a policy that a run was asked for.
struct ShardOfRun {
  std::int64_t index = 1;  // From 1 to count.
  std::int64_t count = 1;
  std::int64_t num_problems = 0;  // Of the policy; 0: not known.
};

// What became of one suppression, or of one entry of a baseline, in a run.
struct SuppressionUse {
  std::string check, engine, problem, kind;  // As written; kind may be empty.
  std::string reason;
  std::string expires;      // "2026-12-31", or empty.
  SourceLocation location;  // In the policy; empty for a baseline's.
  bool baseline = false;
  bool expired = false;  // It accepts nothing, and the run fails.

  // A check that it fits was judged on a problem that it fits. If it then
  // accepts no finding, nothing is left to accept.
  bool reached = false;
  std::int64_t num_findings = 0;  // that it accepts
};

struct RunResult {
  std::string engine;
  std::string policy;         // File name, or "built-in".
  std::string policy_digest;  // Of all that it says; may be empty.
  ShardOfRun shard;
  bool policy_found = false;  // Nobody named the file: it was searched for.
  std::uint64_t seed = 0;
  int threads = 1;
  Verdict verdict = Verdict::kInconclusive;
  std::string note;
  std::vector<ProblemResult> problems;
  std::vector<SuppressionUse> suppressions = {};  // Those for this engine.
};

// Exit codes of the command: 0 pass, 1 violation, 3 engine error,
// 4 inconclusive or nothing checked. (2 is a usage or policy error and has no
// result.)
int exit_code(Verdict verdict);

// The verdict of a problem from its checks, and of a run from its problems.
// Checks whose findings are all accepted or only warn have no veto.
// A violation outranks an engine error, which outranks inconclusive; a run in
// which nothing was checked is inconclusive, never a pass.
Verdict combine_checks(const std::vector<CheckResult>& checks);
Verdict combine_problems(const std::vector<ProblemResult>& problems);

// The verdict of a run whose violations do not count: a problem that violates
// something was at least run.
Verdict verdict_but_findings(const RunResult& run);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_FINDING_RESULT_H_
