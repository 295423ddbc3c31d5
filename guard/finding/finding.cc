#include <array>

#include "guard/finding/result.h"

namespace attnguard {

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 6> kNames = {
      "pass",           "violation",   "inconclusive",
      "not_applicable", "unsupported", "engine_error"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string_view finding_kind_name(FindingKind kind) {
  constexpr std::array<std::string_view, 9> kNames = {
      "leak",      "miss",      "mass",           "value",        "non_finite",
      "unwritten", "overwrite", "not_repeatable", "out_of_bounds"};
  return kNames[static_cast<std::size_t>(kind)];
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return 0;
    case Verdict::kViolation:
      return 1;
    case Verdict::kEngineError:
      return 3;
    case Verdict::kInconclusive:
    case Verdict::kNotApplicable:
    case Verdict::kUnsupported:
      break;
  }
  return 4;
}

Verdict combine_checks(const std::vector<CheckResult>& checks) {
  bool passed = false, inconclusive = false;
  for (const CheckResult& check : checks) {
    passed |= check.verdict == Verdict::kPass;
    if (check.warning_only || check.suppressed()) {
      passed |= check.verdict == Verdict::kViolation;  // evidence, no veto
      continue;
    }
    if (check.verdict == Verdict::kViolation) return Verdict::kViolation;
    inconclusive |= check.verdict == Verdict::kInconclusive;
  }
  return passed && !inconclusive ? Verdict::kPass : Verdict::kInconclusive;
}

Verdict verdict_but_findings(const RunResult& run) {
  std::vector<ProblemResult> outcomes;
  for (const ProblemResult& problem : run.problems) {
    const bool failed_too = !problem.note.empty();
    outcomes.emplace_back().verdict = problem.verdict != Verdict::kViolation
                                          ? problem.verdict
                                      : failed_too ? Verdict::kEngineError
                                                   : Verdict::kPass;
  }
  return combine_problems(outcomes);
}

Verdict combine_problems(const std::vector<ProblemResult>& problems) {
  bool passed = false, inconclusive = false, error = false;
  for (const ProblemResult& problem : problems) {
    if (problem.verdict == Verdict::kViolation) return Verdict::kViolation;
    passed |= problem.verdict == Verdict::kPass;
    inconclusive |= problem.verdict == Verdict::kInconclusive;
    error |= problem.verdict == Verdict::kEngineError;
  }
  if (error) return Verdict::kEngineError;
  return passed && !inconclusive ? Verdict::kPass : Verdict::kInconclusive;
}

}  // namespace attnguard
