#include "guard/pipeline.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>

#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/diagnosis/influence_map.h"
#include "guard/diagnosis/match.h"
#include "guard/diagnosis/quota.h"
#include "guard/diagnosis/shrink.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/suppress.h"
#include "guard/probe/execute.h"
#include "guard/probe/plan.h"

namespace attnguard {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// OpenMP's number of threads for the time of a run; 0 leaves it.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) {
    if (threads > 0) omp_set_num_threads(threads);
  }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

// A check at work on one problem.
struct ActiveCheck {
  const CheckInfo* info;
  std::unique_ptr<Check> check;
  FindingSink sink;
  CheckResult* result;
};

bool wanted(const CheckInfo& info, const std::vector<std::string>& only) {
  return only.empty() ||
         std::find(only.begin(), only.end(), info.id) != only.end();
}

// Fills result.checks with one entry per check that is on, and returns those
// that apply to the problem.
std::vector<ActiveCheck> start_checks(const Engine& engine,
                                      const Problem& problem,
                                      const Numerics& numerics,
                                      const Settings& settings,
                                      const std::vector<std::string>& only,
                                      ProblemResult& result) {
  std::vector<ActiveCheck> active;
  result.checks.reserve(all_checks().size());  // results keep their address
  for (const CheckInfo* info : all_checks()) {
    const CheckSettings& own = settings.check(std::string(info->id));
    if (own.severity == Severity::kOff || !wanted(*info, only)) continue;
    const CheckContext context{problem,
                               numerics,
                               engine.capabilities.deterministic,
                               settings.coverage,
                               settings.seed,
                               own.tolerance(problem.dtype),
                               &engine};
    CheckResult& check = result.checks.emplace_back();
    check.check = info->id;
    check.warning_only = own.severity == Severity::kWarning;
    check.note = info->not_applicable(context);
    if (check.note.empty())
      active.push_back({info, info->make(context), {}, &check});
  }
  return active;
}

Status run_calls(Executor& executor, const Plan& plan,
                 std::vector<ActiveCheck>& active) {
  for (int call = 0; call < static_cast<int>(plan.calls().size()); ++call) {
    Observation seen;
    if (Status status = executor.run(plan, call, seen); !status.ok()) {
      if (!seen.memory_faults.empty())
        for (ActiveCheck& check : active)
          check.check->judge_failed(seen, check.sink);
      return status;
    }
    for (ActiveCheck& check : active) check.check->judge(seen, check.sink);
  }
  return ok_status();
}

// Plan, execute, judge. Checks are finished with what was seen even when the
// engine failed half way: a violation already found stays found.
Status run_checks(Executor& executor, const Problem& problem,
                  std::vector<ActiveCheck>& active) {
  Plan plan(problem.head_dim_v);
  for (ActiveCheck& check : active) check.check->plan(plan);
  const Status status = run_calls(executor, plan, active);
  for (ActiveCheck& check : active) {
    check.check->finish(check.sink, *check.result);
    check.result->num_findings = check.sink.count();
    check.result->num_by_kind = check.sink.by_kind();
    check.result->largest_difference = check.sink.largest_difference();
    check.result->largest_probe = check.sink.largest_probe();
    check.result->findings = check.sink.take();
  }
  return status;
}

// Everything but the smallest case: what shrinking calls again and again.
void judge_problem(const Engine& engine, const Problem& problem,
                   const Settings& settings,
                   const std::vector<std::string>& only, const Date& today,
                   ProblemResult& result) {
  const auto start = Clock::now();
  result.problem = problem;
  result.problem_line = problem.text();
  if (Status status = problem.validate(); !status.ok()) {
    result.verdict = Verdict::kInconclusive;
    result.note = "invalid problem: " + status.message();
    return;
  }
  if (std::string reason = unsupported_reason(engine, problem);
      !reason.empty()) {
    result.verdict = Verdict::kUnsupported;
    result.note = reason;
    return;
  }
  const Numerics numerics = numerics_of(engine, problem);
  std::vector<ActiveCheck> active =
      start_checks(engine, problem, numerics, settings, only, result);
  Executor executor(engine, problem);
  Status status = executor.allocate();
  if (status.ok() && !active.empty())
    status = run_checks(executor, problem, active);
  result.engine_calls = executor.engine_calls();
  result.engine_seconds = executor.engine_seconds();
  result.guard_seconds = seconds_since(start) - result.engine_seconds;
  suppress_findings(settings.suppressions, today, result);
  if (!status.ok()) {
    result.verdict = status.code() == StatusCode::kEngineFailure
                         ? Verdict::kEngineError
                         : Verdict::kInconclusive;
    result.note = status.message();
    // Of an unfinished run only what was found counts, never what passed.
    std::erase_if(result.checks, [](const CheckResult& check) {
      return check.verdict != Verdict::kViolation;
    });
    if (combine_checks(result.checks) == Verdict::kViolation)
      result.verdict = Verdict::kViolation;
    return;
  }
  const bool none_applies =
      !result.checks.empty() &&
      std::all_of(result.checks.begin(), result.checks.end(),
                  [](const CheckResult& check) {
                    return check.verdict == Verdict::kNotApplicable;
                  });
  result.verdict =
      none_applies ? Verdict::kNotApplicable : combine_checks(result.checks);
}

// Not those whose findings are all accepted.
bool fails(const CheckResult& check) {
  return check.verdict == Verdict::kViolation && !check.suppressed();
}

// The check whose finding says most, by itself: shrinking tries many problems.
std::vector<std::string> telling_check(const ProblemResult& result) {
  for (const CheckResult& check : result.checks)
    for (const Finding& finding : check.findings)
      if (fails(check) && finding.batch >= 0) return {check.check};
  return {failing_checks(result).front()};
}

// The finding that says most about visibility: a leak or miss with a key.
const Finding* telling_finding(const ProblemResult& result) {
  const Finding* best = nullptr;
  for (const CheckResult& check : result.checks)
    for (const Finding& finding : check.findings) {
      if (finding.batch < 0 || !finding.suppressed.empty()) continue;
      if (best == nullptr || (best->key < 0 && finding.key >= 0))
        best = &finding;
    }
  return best;
}

// A map in which all is as it should be explains nothing: the failure is one
// of mass, value or memory.
bool shows_something_wrong(const InfluenceMap& map) {
  return std::any_of(map.cells.begin(), map.cells.end(),
                     [](const std::string& row) {
                       return row.find_first_of("Xo") != std::string::npos;
                     });
}

// Looks for the smallest problem on which the same check fails: first among
// the usual small ones, then step by step from what was found.
ProblemResult smallest_failure(const Engine& engine, const Settings& settings,
                               const RunOptions& options,
                               const ProblemResult& result) {
  const auto start = Clock::now();
  const std::vector<std::string> failing = telling_check(result);
  ProblemResult smallest = result;
  const auto fails_on = [&](const std::vector<Problem>& candidates) {
    for (const Problem& candidate : candidates) {
      if (seconds_since(start) > options.shrink_seconds) break;
      ProblemResult tried;
      judge_problem(engine, candidate, settings, failing, today_of(options),
                    tried);
      if (tried.verdict != Verdict::kViolation) continue;
      smallest = std::move(tried);
      return true;
    }
    return false;
  };
  fails_on(shrink_candidates(result.problem));
  while (fails_on(shrink_steps(smallest.problem))) {
  }
  return smallest;
}

// Shrinks the failure and draws its influence map. Returns the problem.
Problem shrink_failure(const Engine& engine, const Settings& settings,
                       const RunOptions& options, ProblemResult& result) {
  const ProblemResult smallest =
      smallest_failure(engine, settings, options, result);
  result.smallest_failing = smallest.problem_line;
  const Finding* finding = telling_finding(smallest);
  if (finding == nullptr) return smallest.problem;
  Result<InfluenceMap> map = draw_influence_map(
      engine, smallest.problem, settings.seed, finding->batch,
      std::max<std::int64_t>(finding->head, 0), finding->query, finding->key);
  if (map.ok() && shows_something_wrong(map.value()))
    result.map = std::move(map.value());
  return smallest.problem;
}

std::string replay_command(const Engine& engine, const Settings& settings,
                           const ProblemResult& result) {
  std::string command = "attnguard check --engine " + shell_quote(engine.name) +
                        " --seed " + std::to_string(settings.seed);
  if (!settings.policy_file.empty())
    command += " --policy " + shell_quote(settings.policy_file);
  if (settings.coverage != Coverage::kEdges)
    command += " --coverage " + std::string(coverage_name(settings.coverage));
  for (const std::string& id : failing_checks(result))
    command += " --check " + id;
  const std::string& line = result.smallest_failing.empty()
                                ? result.problem_line
                                : result.smallest_failing;
  return command + " --problem " + shell_quote(line);
}

// The smallest failing case, its map, and what the engine behaves like.
void explain_failure(const Engine& engine, const Settings& settings,
                     const RunOptions& options, DiagnosisQuota& quota,
                     ProblemResult& result) {
  const Problem smallest = shrink_failure(engine, settings, options, result);
  if (!options.diagnose || !quota.wants(result)) return;
  try {
    result.diagnosis =
        diagnose(engine, smallest, result.problem, settings.seed);
  } catch (...) {
    // What was found stays found, explained or not.
  }
}

ProblemResult verify_one(const Engine& engine, const Problem& problem,
                         const Settings& settings, const RunOptions& options,
                         DiagnosisQuota& quota) {
  ProblemResult result;
  try {
    judge_problem(engine, problem, settings, options.checks, today_of(options),
                  result);
    if (result.verdict == Verdict::kViolation && options.draw_maps)
      explain_failure(engine, settings, options, quota, result);
    if (result.verdict != Verdict::kPass &&
        result.verdict != Verdict::kUnsupported)
      result.replay = replay_command(engine, settings, result);
  } catch (const std::exception& error) {
    result.verdict = Verdict::kEngineError;
    result.note = std::string("not judged: ") + error.what();
  } catch (...) {
    result.verdict = Verdict::kEngineError;
    result.note =
        "not judged: the engine's capabilities or memory functions threw "
        "something that is not a std::exception";
  }
  return result;
}

// Why the run is to stop; empty: it goes on.
std::string stop_reason(const RunOptions& options) {
  return options.stop ? options.stop() : std::string();
}

ProblemResult left_unchecked(const Problem& problem, const std::string& why) {
  ProblemResult result;
  result.problem = problem;
  result.problem_line = problem.text();
  result.unchecked = true;
  result.note = "not checked: " + why;
  return result;
}

}  // namespace

ProblemResult verify_problem(const Engine& engine, const Problem& problem,
                             const Settings& settings,
                             const RunOptions& options) {
  DiagnosisQuota quota;
  return verify_one(engine, problem, settings, options, quota);
}

Date today_of(const RunOptions& options) {
  return options.today.value_or(today_utc());
}

RunResult verify(const Engine& engine, const Policy& policy,
                 const RunOptions& options) {
  RunResult run;
  run.engine = engine.name;
  run.policy = policy.name;
  run.policy_found = policy.found;
  run.seed = policy.seed;
  for (const std::string& id : options.checks) {
    if (find_check(id) != nullptr) continue;
    run.note = "unknown check '" + id + "'" + suggestion(id, check_ids());
    return run;
  }
  const ThreadCount threads(options.threads);
  run.threads = omp_get_max_threads();
  const Settings settings = policy.resolve(engine.name);
  DiagnosisQuota quota;
  for (std::size_t i = 0; i < policy.problems.size(); ++i) {
    const Problem& problem = policy.problems[i].problem;
    std::string stopped = stop_reason(options);
    ProblemResult result;
    if (stopped.empty()) {
      if (options.progress) options.progress(i, policy.problems.size());
      result = verify_one(engine, problem, settings, options, quota);
      if (result.verdict == Verdict::kEngineError)
        stopped = stop_reason(options);
    }
    if (!stopped.empty()) result = left_unchecked(problem, stopped);
    result.location = policy.problems[i].location;
    result.number = static_cast<std::int64_t>(i) + 1;
    run.problems.push_back(std::move(result));
  }
  run.verdict = combine_problems(run.problems);
  settle_suppressions(settings.suppressions, today_of(options), run);
  return run;
}

const Policy& default_policy() {
  static const Policy policy = [] {
    PolicyParse parse =
        parse_policy(default_policy_text(), "built-in", check_ids());
    // The tests parse the built-in text; were it broken, a run on no problems
    // is inconclusive, never a pass.
    return parse.policy.value_or(Policy{});
  }();
  return policy;
}

}  // namespace attnguard
