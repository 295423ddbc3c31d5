#include "ci/run/run.h"

#include <algorithm>

#include "ci/cli.h"
#include "ci/run/failures.h"
#include "ci/run/job_pool.h"
#include "ci/run/stop.h"
#include "ci/run/text_file.h"
#include "guard/check/check.h"
#include "guard/diagnosis/quota.h"
#include "guard/policy/policy_text.h"
#include "guard/policy/policy_yaml.h"
#include "guard/policy/suppress.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

using Indices = std::vector<std::size_t>;

ProblemResult left_out(const PolicyProblem& problem, const std::string& why) {
  ProblemResult result;
  result.problem = problem.problem;
  result.problem_line = problem.problem.text();
  result.unchecked = true;
  result.note = "not checked: " + why;
  return result;
}

ProblemResult not_replayed(const SavedFailure& failure) {
  ProblemResult result;
  result.problem = Problem::parse(failure.problem).value();
  result.problem_line = failure.problem;
  result.verdict = Verdict::kNotApplicable;
  result.note =
      "saved failure, not replayed: the policy has its checks turned off";
  return result;
}

// What a failure was found with shows it again, whatever the policy says now.
void use_coverage(const std::string& name, Policy& policy) {
  for (Coverage coverage :
       {Coverage::kSampled, Coverage::kEdges, Coverage::kFull})
    if (coverage_name(coverage) == name)
      policy.patches.emplace_back().coverage = coverage;
}

// One engine's part of the run.
struct EnginePart {
  Indices chosen;                      // Of the policy's problems.
  std::vector<ProblemResult> results;  // In the order of `chosen`.
};

class Run {
 public:
  explicit Run(RunRequest& request)
      : request_(request),
        policy_(request.policy),
        stop_(request.settings.time_limit, request.catch_signals) {}

  Result<RunOutcome> go() {
    for (const Engine& engine : request_.engines) {
      engine_names_.push_back(engine.name);
      gives_weights_.push_back(engine.capabilities.has(Feature::kWeights));
    }
    choose();
    Status status = replay_saved();
    if (status.ok())
      status = request_.settings.jobs > 1 ? run_jobs() : run_here();
    if (!status.ok()) return status;
    RunOutcome outcome;
    outcome.signal = stop_.signal();
    for (std::size_t e = 0; e < engine_names_.size(); ++e)
      outcome.results.push_back(finished(e));
    status = keep_failures(outcome.results);
    if (!status.ok()) return status;
    return outcome;
  }

 private:
  void choose();
  bool is_supported(std::size_t engine, std::size_t problem) const;
  Status replay_saved();
  bool is_off(const std::string& engine, const SavedFailure& failure) const;
  RunResult replayed(const Engine& engine, const SavedFailure& failure);
  Status run_here();
  Status run_jobs();
  Status verify_in_jobs(JobPool& pool);
  Status diagnose_in_jobs(JobPool& pool);
  RunResult finished(std::size_t engine);
  Status keep_failures(const std::vector<RunResult>& results) const;
  std::int64_t bytes(std::size_t engine, const Problem& problem) const {
    return estimated_bytes(problem, gives_weights_[engine]);
  }
  bool is_too_large(std::size_t engine, const Problem& problem) const {
    return request_.settings.max_memory &&
           bytes(engine, problem) > *request_.settings.max_memory;
  }
  std::string too_large(std::size_t engine, const Problem& problem) const {
    return "it needs about " + size_text(bytes(engine, problem)) +
           " of memory, and --max-memory is " +
           size_text(*request_.settings.max_memory);
  }
  void say(const std::string& line) const {
    if (request_.progress) request_.progress(line);
  }

  RunRequest& request_;
  const Policy& policy_;
  StopSource stop_;
  std::vector<std::string> engine_names_;
  std::vector<bool> gives_weights_;
  std::vector<EnginePart> parts_;
  std::vector<std::vector<ProblemResult>> replayed_;
  std::vector<int> threads_;
};

bool Run::is_supported(std::size_t engine, std::size_t problem) const {
  try {
    return unsupported_reason(request_.engines[engine],
                              policy_.problems[problem].problem)
        .empty();
  } catch (...) {
    return true;  // The problem's result says what was thrown.
  }
}

// What an engine does not take costs next to nothing: were it counted, some
// shard might have nothing to check. All engines get the same problems, so that
// no shard has none for one of them.
void Run::choose() {
  const std::int64_t count = request_.settings.shard.count;
  parts_.resize(engine_names_.size());
  std::vector<double> costs(policy_.problems.size(), 0.0);
  for (std::size_t p = 0; p < costs.size(); ++p)
    for (std::size_t e = 0; e < parts_.size(); ++e)
      if (count > 1 && is_supported(e, p))
        costs[p] += request_.settings.costs.of(engine_names_[e],
                                               policy_.problems[p].problem);
  const std::vector<std::int64_t> shard = share_out(costs, count);
  for (std::size_t p = 0; p < costs.size(); ++p)
    if (shard[p] + 1 == request_.settings.shard.index)
      for (EnginePart& part : parts_) part.chosen.push_back(p);
}

// All checks that failed then are off by now.
bool Run::is_off(const std::string& engine, const SavedFailure& failure) const {
  if (failure.checks.empty() || !request_.options.checks.empty()) return false;
  const Settings settings = policy_.resolve(engine);
  return std::all_of(failure.checks.begin(), failure.checks.end(),
                     [&](const std::string& id) {
                       return settings.check(id).severity == Severity::kOff;
                     });
}

RunResult Run::replayed(const Engine& engine, const SavedFailure& failure) {
  Policy policy = policy_;
  policy.seed = failure.seed;
  use_coverage(failure.coverage, policy);
  policy.problems = {{Problem::parse(failure.problem).value(), {}}};
  RunOptions options = request_.options;
  options.stop = [this] { return stop_.reason(); };
  if (options.checks.empty()) options.checks = failure.checks;
  return verify(stoppable(engine, stop_), policy, options);
}

// What failed before comes first, in the first shard alone.
Status Run::replay_saved() {
  replayed_.resize(engine_names_.size());
  if (request_.settings.failures.empty() || request_.settings.shard.index != 1)
    return ok_status();
  for (std::size_t e = 0; e < engine_names_.size(); ++e) {
    const auto saved =
        load_failures(request_.settings.failures, engine_names_[e]);
    if (!saved.ok()) return saved.status();
    for (std::size_t i = 0; i < saved.value().size(); ++i) {
      say(engine_names_[e] + "  saved failure " + std::to_string(i + 1) +
          " of " + std::to_string(saved.value().size()));
      if (is_off(engine_names_[e], saved.value()[i])) {
        replayed_[e].push_back(not_replayed(saved.value()[i]));
        continue;
      }
      RunResult run = replayed(request_.engines[e], saved.value()[i]);
      for (ProblemResult& result : run.problems) {
        result.number = 0;
        replayed_[e].push_back(std::move(result));
      }
    }
  }
  return ok_status();
}

Status Run::run_here() {
  for (std::size_t e = 0; e < parts_.size(); ++e) {
    EnginePart& part = parts_[e];
    Policy chosen = policy_;
    chosen.problems.clear();
    for (std::size_t p : part.chosen)
      if (!is_too_large(e, policy_.problems[p].problem))
        chosen.problems.push_back(policy_.problems[p]);
    RunOptions options = request_.options;
    options.stop = [this] { return stop_.reason(); };
    options.progress = [&](std::size_t index, std::size_t total) {
      say(engine_names_[e] + "  problem " + std::to_string(index + 1) + " of " +
          std::to_string(total));
    };
    RunResult run =
        verify(stoppable(request_.engines[e], stop_), chosen, options);
    threads_.push_back(run.threads);
    auto next = run.problems.begin();
    for (std::size_t p : part.chosen)
      part.results.push_back(
          is_too_large(e, policy_.problems[p].problem)
              ? left_out(policy_.problems[p],
                         too_large(e, policy_.problems[p].problem))
              : std::move(*next++));
  }
  return ok_status();
}

Status Run::verify_in_jobs(JobPool& pool) {
  struct Place {
    std::size_t engine, result, problem;
    double cost;
  };
  std::vector<Place> places;
  for (std::size_t e = 0; e < parts_.size(); ++e) {
    EnginePart& part = parts_[e];
    for (std::size_t p : part.chosen) {
      const Problem& problem = policy_.problems[p].problem;
      part.results.push_back(left_out(
          policy_.problems[p],
          is_too_large(e, problem) ? too_large(e, problem) : "the run ended"));
      if (!is_too_large(e, problem))
        places.push_back(
            {e, part.results.size() - 1, p,
             request_.settings.costs.of(engine_names_[e], problem)});
    }
  }
  // The dearest first: none is then waited for alone at the end. Where time is
  // short, the policy's order gets more done.
  if (!request_.settings.time_limit)
    std::stable_sort(
        places.begin(), places.end(),
        [](const Place& a, const Place& b) { return a.cost > b.cost; });
  std::vector<JobTask> tasks;
  for (const Place& place : places)
    tasks.push_back(
        {"verify " + std::to_string(place.engine) + " " +
             std::to_string(place.problem),
         bytes(place.engine, policy_.problems[place.problem].problem)});
  std::vector<JobPool::Answer> answers;
  const Status status = pool.run(tasks, answers, [&](std::size_t done) {
    say("problem " + std::to_string(done) + " of " +
        std::to_string(tasks.size()));
  });
  if (!status.ok()) return status;
  for (std::size_t t = 0; t < places.size(); ++t) {
    ProblemResult& result = parts_[places[t].engine].results[places[t].result];
    if (!answers[t]) {
      result.note = "not checked: " + stop_.reason();
    } else if (answers[t]->ok()) {
      result = std::move(answers[t]->value());
    } else {
      result.unchecked = false;
      result.verdict = Verdict::kEngineError;
      result.note = "not judged: " + answers[t]->status().message();
    }
  }
  return ok_status();
}

// As one process would: which failures are diagnosed depends on those before.
Status Run::diagnose_in_jobs(JobPool& pool) {
  std::vector<ProblemResult*> places;
  std::vector<JobTask> tasks;
  for (std::size_t e = 0; e < parts_.size(); ++e) {
    DiagnosisQuota quota;
    for (std::size_t i = 0; i < parts_[e].results.size(); ++i) {
      ProblemResult& result = parts_[e].results[i];
      if (result.verdict != Verdict::kViolation || !quota.wants(result))
        continue;
      places.push_back(&result);
      tasks.push_back({"diagnose " + std::to_string(e) + " " +
                           std::to_string(parts_[e].chosen[i]) + " " +
                           result.smallest_failing,
                       bytes(e, result.problem)});
    }
  }
  std::vector<JobPool::Answer> answers;
  const Status status = pool.run(tasks, answers, [&](std::size_t done) {
    say("diagnosis " + std::to_string(done) + " of " +
        std::to_string(tasks.size()));
  });
  if (!status.ok()) return status;
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (answers[t] && answers[t]->ok())
      places[t]->diagnosis = std::move(answers[t]->value().diagnosis);
  return ok_status();
}

Status Run::run_jobs() {
  threads_.assign(parts_.size(), request_.options.threads);
  // Their processes would only wait.
  request_.engines.clear();
  JobPool pool(
      {request_.program, request_.words, request_.settings.jobs,
       policy_digest(policy_, request_.options), request_.settings.max_memory},
      stop_);
  Status status = verify_in_jobs(pool);
  if (status.ok() && request_.options.draw_maps && !stop_.stopped())
    status = diagnose_in_jobs(pool);
  return status;
}

// "2 of 7 problems were not checked: the time limit of 5 s was over"
std::string unchecked_note(const std::vector<ProblemResult>& results,
                           std::int64_t unchecked) {
  std::string why;
  for (const ProblemResult& result : results)
    if (result.unchecked && why.empty()) why = result.note;
  return std::to_string(unchecked) + " of " + std::to_string(results.size()) +
         " problems were " + why;
}

RunResult Run::finished(std::size_t engine) {
  RunResult run;
  run.engine = engine_names_[engine];
  run.policy = policy_.name;
  run.policy_found = policy_.found;
  run.policy_digest = policy_digest(policy_, request_.options);
  run.shard = request_.settings.shard;
  run.shard.num_problems = static_cast<std::int64_t>(policy_.problems.size());
  run.seed = policy_.seed;
  run.threads = threads_[engine];
  run.problems = std::move(replayed_[engine]);
  EnginePart& part = parts_[engine];
  for (std::size_t i = 0; i < part.chosen.size(); ++i) {
    ProblemResult& result = part.results[i];
    result.number = static_cast<std::int64_t>(part.chosen[i]) + 1;
    result.location = policy_.problems[part.chosen[i]].location;
    run.problems.push_back(std::move(result));
  }
  const auto unchecked =
      std::count_if(run.problems.begin(), run.problems.end(),
                    [](const ProblemResult& one) { return one.unchecked; });
  if (unchecked > 0) run.note = unchecked_note(run.problems, unchecked);
  if (100.0 * static_cast<double>(unchecked) <=
      request_.settings.most_unchecked *
          static_cast<double>(run.problems.size()))
    for (ProblemResult& result : run.problems)
      if (result.unchecked) result.verdict = Verdict::kNotApplicable;
  if (run.problems.empty())
    run.note = "no problem falls to shard " + std::to_string(run.shard.index) +
               " of " + std::to_string(run.shard.count);
  run.verdict = combine_problems(run.problems);
  settle_suppressions(policy_.resolve(run.engine).suppressions,
                      today_of(request_.options), run);
  return run;
}

Status Run::keep_failures(const std::vector<RunResult>& results) const {
  if (request_.settings.failures.empty()) return ok_status();
  for (const RunResult& run : results) {
    const Status status =
        save_failures(request_.settings.failures,
                      failures_of(run, policy_.resolve(run.engine),
                                  request_.policy_settings));
    if (!status.ok()) return status;
  }
  return ok_status();
}

}  // namespace

std::string policy_digest(const Policy& policy, const RunOptions& options) {
  std::string text = print_policy(policy) + "\nchecks:";
  for (const std::string& check : options.checks) text += " " + check;
  // A policy's own suppressions are printed with it.
  for (const Suppression& one : policy.suppressions)
    if (one.baseline) text += "\nbaseline:\n" + suppression_entry_text(one);
  return digest_of(text);
}

Result<RunOutcome> run_request(RunRequest& request) {
  return Run(request).go();
}

int exit_code_of(const RunOutcome& outcome, Verdict verdict) {
  const int code = exit_code(verdict);
  const bool nothing = code == kExitPass || code == kExitInconclusive;
  return outcome.signal != 0 && nothing ? 128 + outcome.signal : code;
}

}  // namespace attnguard
