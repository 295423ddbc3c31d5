#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "ci/tune/tune.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"

namespace attnguard {
namespace {

constexpr std::array<std::string_view, 10> kTuned = {"row-sum",
                                                     "value-range",
                                                     "reference",
                                                     "score-shift",
                                                     "prefix-consistency",
                                                     "decode-consistency",
                                                     "batch-consistency",
                                                     "weights",
                                                     "lse",
                                                     "repeatable"};

// Nothing is tolerated where something could be.
Settings without_tolerance(Settings settings) {
  for (std::string_view check : kTuned)
    for (const DtypeInfo& info : all_dtypes())
      settings.checks[std::string(check)].tolerances[info.dtype] = {
          Tolerance::Kind::kNumber, 0};
  return settings;
}

Settings automatic(Settings settings) {
  for (auto& [id, check] : settings.checks) check.tolerances.clear();
  return settings;
}

// The coarsest arithmetic that a kernel for the dtype may have: half precision
// throughout and inputs of 11 bits for fp32, fp32 for fp64.
Numerics coarsest(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  const Dtype type = problem.dtype == Dtype::kFp64   ? Dtype::kFp32
                     : problem.dtype == Dtype::kFp32 ? Dtype::kFp16
                                                     : problem.dtype;
  numerics.score = numerics.probability = numerics.accumulator = type;
  numerics.key_error = numerics.value_error = unit_roundoff(type);
  return numerics;
}

// Rounding makes values differ, and nothing else.
bool could_be_rounding(const CheckResult& check) {
  if (!std::isfinite(check.largest_difference)) return false;
  return std::ranges::all_of(check.num_by_kind, [](const auto& item) {
    return item.first == FindingKind::kMass ||
           item.first == FindingKind::kValue ||
           item.first == FindingKind::kNotRepeatable;
  });
}

const CheckResult* check_of(const ProblemResult& result, std::string_view id) {
  const auto found = std::ranges::find(result.checks, id, &CheckResult::check);
  return found == result.checks.end() ? nullptr : &*found;
}

class Measuring {
 public:
  Measuring(const Engine& engine, const Policy& policy,
            const TuneOptions& options)
      : engine_(engine), options_(options) {
    settings_ = policy.resolve(engine.name);
    settings_.suppressions.clear();
    run_options_.draw_maps = false;
    run_options_.threads = options.threads;
  }

  Measured run(const std::vector<PolicyProblem>& problems) {
    for (std::size_t i = 0; i < problems.size(); ++i) {
      if (options_.progress) options_.progress(i, problems.size());
      const Problem& problem = problems[i].problem;
      if (!unsupported_reason(engine_, problem).empty()) continue;
      ++measured_.problems;
      for (int repeat = 0; repeat < options_.repeats; ++repeat)
        if (!take(problem, static_cast<std::uint64_t>(repeat)))
          return std::move(measured_);
    }
    for (auto& [key, one] : by_check_) {
      one.tolerance = with_margin(one.error, options_.margin);
      if (one.error > 0 && !is_defective(one.check))
        measured_.measurements.push_back(std::move(one));
    }
    return std::move(measured_);
  }

 private:
  // False when the engine failed.
  bool take(const Problem& problem, std::uint64_t repeat) {
    Settings judged = automatic(settings_);
    judged.seed += repeat;
    const ProblemResult today =
        verify_problem(engine_, problem, judged, run_options_);
    if (failed(today)) return false;
    const ProblemResult bare = verify_problem(
        engine_, problem, without_tolerance(judged), run_options_);
    if (failed(bare)) return false;
    for (const CheckResult& check : today.checks)
      if (check.verdict == Verdict::kViolation && !check.warning_only)
        judge_violation(problem, judged, check);
    for (const CheckResult& check : bare.checks)
      if (is_tuned(check.check)) note_error(problem, today, check);
    return true;
  }

  bool failed(const ProblemResult& result) {
    if (result.note.empty() || result.verdict == Verdict::kUnsupported)
      return false;
    measured_.engine_error = result.problem_line + ": " + result.note;
    return true;
  }

  // More than rounding, or only more than the engine declares?
  void judge_violation(const Problem& problem, const Settings& judged,
                       const CheckResult& check) {
    if (is_defective(check.check)) return;
    const bool explained = could_be_rounding(check) &&
                           passes_coarsely(problem, judged, check.check);
    if (explained && is_tuned(check.check)) return;
    measured_.defective.push_back(
        {check.check, problem.text(),
         check.findings.empty() ? check.note : check.findings.front().message,
         !explained});
  }

  bool passes_coarsely(const Problem& problem, const Settings& judged,
                       const std::string& id) {
    Engine coarse = engine_;
    coarse.capabilities.numerics = coarsest;
    const ProblemResult result =
        verify_problem(coarse, problem, judged, run_options_);
    const CheckResult* check = check_of(result, id);
    return check != nullptr && check->verdict != Verdict::kViolation;
  }

  void note_error(const Problem& problem, const ProblemResult& today,
                  const CheckResult& check) {
    const bool judged =
        check.verdict == Verdict::kPass || check.verdict == Verdict::kViolation;
    if (!judged) return;
    Measurement& one = by_check_[{place_of(check.check), problem.dtype}];
    one.check = check.check;
    one.dtype = problem.dtype;
    ++one.judged;
    const CheckResult* before = check_of(today, check.check);
    one.auto_holds &=
        before == nullptr || before->verdict != Verdict::kViolation;
    if (check.largest_difference <= one.error) return;
    one.error = check.largest_difference;
    one.probe = check.largest_probe;
    one.problem = problem.text();
  }

  bool is_defective(const std::string& check) const {
    return std::ranges::find(measured_.defective, check, &Defective::check) !=
           measured_.defective.end();
  }

  static std::ptrdiff_t place_of(std::string_view check) {
    return std::ranges::find(kTuned, check) - kTuned.begin();
  }

  const Engine& engine_;
  const TuneOptions& options_;
  Settings settings_;
  RunOptions run_options_;
  Measured measured_;
  std::map<std::pair<std::ptrdiff_t, Dtype>, Measurement> by_check_;
};

}  // namespace

std::span<const std::string_view> tuned_checks() { return kTuned; }

bool is_tuned(std::string_view check) {
  return std::ranges::find(kTuned, check) != kTuned.end();
}

double with_margin(double error, double margin) {
  const double wanted = error * margin;
  if (!(wanted > 0) || !std::isfinite(wanted)) return 0;
  const double step = std::pow(10.0, std::floor(std::log10(wanted)) - 1);
  // The decimal itself, so that no digits of the power are printed.
  const double rounded = std::ceil(wanted / step * (1 - 1e-12)) * step;
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.2g", rounded);
  return parse_double(buffer).value_or(rounded);
}

Measured measure(const Engine& engine, const Policy& policy,
                 const TuneOptions& options) {
  return Measuring(engine, policy, options).run(policy.problems);
}

}  // namespace attnguard
