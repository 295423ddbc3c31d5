#include "guard/diagnosis/selftest.h"

#include <algorithm>
#include <set>

#include "guard/base/rng.h"
#include "guard/problem/random_problem.h"

namespace attnguard {
namespace {

std::string first_message(const ProblemResult& result) {
  for (const CheckResult& check : result.checks)
    if (!check.findings.empty())
      return check.check + ": " + check.findings.front().message;
  return result.note;
}

void add_note(std::string& note, const std::string& text) {
  note += (note.empty() ? "" : "; ") + text;
}

// The place of the defect on one problem, with ties against it.
int rank_of(const Defect& defect, const Diagnosis& diagnosis) {
  const auto& equal = diagnosis.equally_good;
  if (std::find(equal.begin(), equal.end(), defect.id) != equal.end())
    return static_cast<int>(equal.size());
  for (std::size_t place = 0; place < diagnosis.explanations.size(); ++place)
    if (diagnosis.explanations[place].id == defect.id)
      return static_cast<int>(place) + 1;
  return 0;
}

// Folds one problem's rank into the defect's: the worst counts, and not to be
// named at all is worse than any place.
void take_rank(int rank, DefectTrial& trial) {
  const bool first = trial.problems == 1;
  if (first || rank == 0 || (trial.rank != 0 && rank > trial.rank))
    trial.rank = rank;
}

DefectTrial try_defect(const Defect& defect, const Verify& verify,
                       std::span<const std::string_view> check_ids) {
  DefectTrial trial{.defect = &defect, .found_by = {}, .tied_with = {}};
  const Engine engine = defect_engine(defect);
  std::set<std::string_view> found_by, tied_with;
  for (std::string_view line : defect.shows_on) {
    if (line.empty()) continue;
    ++trial.problems;
    const Result<Problem> problem = Problem::parse(line);
    if (!problem.ok()) {
      take_rank(0, trial);
      add_note(trial.note, problem.status().message());
      continue;
    }
    const ProblemResult result =
        verify(engine, problem.value(), TrialKind::kDefect);
    if (result.verdict == Verdict::kViolation)
      ++trial.detected;
    else
      add_note(trial.note, "not found on '" + std::string(line) + "'");
    for (std::string_view id : check_ids)
      for (const CheckResult& check : result.checks)
        if (check.check == id && check.verdict == Verdict::kViolation)
          found_by.insert(id);
    const int rank = result.diagnosis ? rank_of(defect, *result.diagnosis) : 0;
    take_rank(rank, trial);
    if (rank == 0)
      add_note(trial.note, "not named on '" + std::string(line) + "'");
    if (!result.diagnosis) continue;
    for (const std::string& id : result.diagnosis->equally_good)
      if (const Defect* other = find_defect(id);
          other != nullptr && other != &defect && rank > 0)
        tied_with.insert(other->id);
  }
  for (std::string_view id : check_ids)
    if (found_by.count(id) > 0) trial.found_by.emplace_back(id);
  trial.tied_with.assign(tied_with.begin(), tied_with.end());
  return trial;
}

void try_clean(const Engine& engine, const Problem& problem,
               const Verify& verify, TrialKind expected, CleanTrial& trial) {
  ++trial.problems;
  const ProblemResult result = verify(engine, problem, expected);
  switch (result.verdict) {
    case Verdict::kPass:
      ++trial.passed;
      return;
    case Verdict::kViolation:
    case Verdict::kEngineError:
      trial.alarms.push_back(
          {engine.name, problem.text(), result.verdict, first_message(result)});
      return;
    case Verdict::kInconclusive:
    case Verdict::kNotApplicable:
    case Verdict::kUnsupported:
      ++trial.not_judged;
      return;
  }
}

CleanTrial try_clean_lines(const Engine& engine,
                           std::span<const std::string_view> lines,
                           const Verify& verify, TrialKind expected) {
  CleanTrial trial{.engine = engine.name, .alarms = {}};
  for (std::string_view line : lines) {
    if (line.empty()) continue;
    const Result<Problem> problem = Problem::parse(line);
    if (problem.ok()) {
      try_clean(engine, problem.value(), verify, expected, trial);
      continue;
    }
    ++trial.problems;
    trial.alarms.push_back({engine.name, std::string(line),
                            Verdict::kEngineError, problem.status().message()});
  }
  return trial;
}

CleanTrial try_random(const Engine& engine, const Verify& verify,
                      const SelftestOptions& options) {
  CleanTrial trial{.engine = engine.name, .alarms = {}};
  for (std::int64_t n = 0; n < options.random_problems; ++n)
    try_clean(engine,
              random_problem(
                  derive_seed(options.seed, static_cast<std::uint64_t>(n))),
              verify, TrialKind::kClean, trial);
  return trial;
}

}  // namespace

SelftestResult run_selftest(const Verify& verify,
                            std::span<const std::string_view> check_ids,
                            std::span<const Engine> correct_engines,
                            const SelftestOptions& options) {
  SelftestResult result;
  result.checks.assign(check_ids.begin(), check_ids.end());
  result.seed = options.seed;
  result.random_problems = options.random_problems;
  const auto begin = [&](const std::string& engine) {
    if (options.progress) options.progress(engine);
  };
  for (const Defect* defect : all_defects()) {
    begin("defect:" + std::string(defect->id));
    const Engine engine = defect_engine(*defect);
    if (defect->legal()) {
      result.legal.push_back(
          try_clean_lines(engine, defect->shows_on, verify, TrialKind::kClean));
    } else {
      result.defects.push_back(try_defect(*defect, verify, check_ids));
      if (!defect->hides_on.empty())
        result.hides.push_back(try_clean_lines(engine, {&defect->hides_on, 1},
                                               verify, TrialKind::kHidden));
    }
  }
  for (const Engine& engine : correct_engines) {
    begin(engine.name);
    result.engines.push_back(try_random(engine, verify, options));
  }
  return result;
}

std::int64_t SelftestResult::detected() const {
  return std::count_if(defects.begin(), defects.end(),
                       [](const DefectTrial& t) { return t.is_detected(); });
}

std::int64_t SelftestResult::ranked_within(int rank) const {
  return std::count_if(
      defects.begin(), defects.end(),
      [&](const DefectTrial& t) { return t.rank >= 1 && t.rank <= rank; });
}

std::int64_t SelftestResult::alarms() const {
  std::size_t count = 0;
  for (const auto* trials : {&hides, &legal, &engines})
    for (const CleanTrial& trial : *trials) count += trial.alarms.size();
  return static_cast<std::int64_t>(count);
}

std::vector<std::pair<std::string, std::string>>
SelftestResult::indistinguishable() const {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const DefectTrial& trial : defects)
    for (const std::string& other : trial.tied_with)
      pairs.insert(std::minmax(std::string(trial.defect->id), other));
  return {pairs.begin(), pairs.end()};
}

bool SelftestResult::ok() const {
  return !defects.empty() &&
         detected() == static_cast<std::int64_t>(defects.size()) &&
         alarms() == 0;
}

}  // namespace attnguard
