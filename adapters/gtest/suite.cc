#include "adapters/gtest/suite.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "adapters/gtest/group_name.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

// As in one run of the command: hundreds of problems may fail for one cause.
constexpr int kMostExplained = 8;

std::string unknown_check(const std::vector<std::string>& checks) {
  for (const std::string& id : checks)
    if (find_check(id) == nullptr)
      return "unknown check '" + id + "'" + suggestion(id, check_ids());
  return {};
}

// Which checks say something about the problem, by what the engine declares.
std::vector<std::string> applicable_checks(
    const Engine& engine, const Problem& problem, const Settings& settings,
    const std::vector<std::string>& only) {
  std::vector<std::string> ids;
  const Numerics numerics = numerics_of(engine, problem);
  for (const CheckInfo* info : all_checks()) {
    const std::string id(info->id);
    const CheckSettings& own = settings.check(id);
    if (own.severity == Severity::kOff) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), id) == only.end())
      continue;
    const CheckContext context{problem,
                               numerics,
                               engine.capabilities.deterministic,
                               settings.coverage,
                               settings.seed,
                               own.tolerance(problem.dtype),
                               &engine};
    if (info->not_applicable(context).empty()) ids.push_back(id);
  }
  return ids;
}

// The report of one check on one problem.
std::string explain(const std::string& engine, const std::string& policy,
                    std::uint64_t seed, const ProblemResult& result,
                    const CheckResult* check, const std::string& replay) {
  RunResult run;
  run.engine = engine;
  run.policy = policy;
  run.seed = seed;
  run.problems.push_back(result);
  ProblemResult& shown = run.problems.front();
  shown.replay = replay;
  if (check != nullptr) {
    shown.checks = {*check};
    shown.verdict = check->verdict;
  }
  run.verdict = shown.verdict;
  return render_test_report(run);
}

}  // namespace

AttentionSuite::AttentionSuite(Engine engine, const TestPolicy& policy,
                               const std::vector<std::string>& checks)
    : engine_(std::move(engine)) {
  error_ = policy.policy() ? unknown_check(checks) : policy.error();
  if (!error_.empty()) return;
  settings_ = policy.policy()->resolve(engine_.name);
  policy_name_ = policy.policy()->name;
  for (const PolicyProblem& each : policy.policy()->problems)
    add_group(each.problem, checks);
  const bool any =
      std::any_of(groups_.begin(), groups_.end(),
                  [](const Group& group) { return !group.checks.empty(); });
  if (any) return;
  error_ = "nothing of the policy '" + policy_name_ + "' can be checked on '" +
           engine_.name + "'";
  for (const Group& group : groups_)
    if (!group.unsupported.empty()) {
      error_ += ": " + group.line + ": " + group.unsupported;
      break;
    }
}

void AttentionSuite::add_group(const Problem& problem,
                               const std::vector<std::string>& checks) {
  Group group;
  group.problem = problem;
  group.line = problem.text();
  group.name = group_name(problem);
  const auto taken = [this](const std::string& name) {
    return std::any_of(groups_.begin(), groups_.end(),
                       [&](const Group& one) { return one.name == name; });
  };
  const std::string base = group.name;
  for (int count = 2; taken(group.name); ++count)
    group.name = base + "_" + std::to_string(count);
  try {
    group.unsupported = unsupported_reason(engine_, problem);
    if (group.unsupported.empty())
      group.checks = applicable_checks(engine_, problem, settings_, checks);
  } catch (...) {
    // The test that runs it says what was thrown.
    for (const CheckInfo* info : all_checks())
      if (checks.empty() ||
          std::find(checks.begin(), checks.end(), info->id) != checks.end())
        group.checks.emplace_back(info->id);
  }
  groups_.push_back(std::move(group));
}

void AttentionSuite::run(std::size_t group,
                         const std::vector<std::string>& checks) {
  if (result_ && result_group_ == group && result_checks_ == checks) return;
  RunOptions options;
  options.checks = checks;
  options.diagnose = explained_ < kMostExplained;
  result_ = verify_problem(engine_, groups_[group].problem, settings_, options);
  result_group_ = group;
  result_checks_ = checks;
  if (result_->verdict == Verdict::kViolation) ++explained_;
}

TestOutcome AttentionSuite::outcome(std::size_t group, const std::string& check,
                                    const std::vector<std::string>& together,
                                    const std::string& replay) {
  using Kind = TestOutcome::Kind;
  if (!groups_[group].unsupported.empty())
    return {Kind::kSkip, groups_[group].unsupported};
  run(group, together);
  const auto found =
      std::find_if(result_->checks.begin(), result_->checks.end(),
                   [&](const CheckResult& one) { return one.check == check; });
  const CheckResult* own = found == result_->checks.end() ? nullptr : &*found;
  const auto text = [&] {
    return explain(engine_.name, policy_name_, settings_.seed, *result_, own,
                   replay);
  };
  // Of an unfinished run there are only the checks that found something.
  if (own == nullptr) return {Kind::kFail, text()};
  switch (own->verdict) {
    case Verdict::kPass:
      return {Kind::kPass, ""};
    case Verdict::kNotApplicable:
      return {Kind::kSkip, own->note};
    case Verdict::kViolation:
      return {own->warning_only ? Kind::kPass : Kind::kFail, text()};
    default:
      return {own->warning_only ? Kind::kSkip : Kind::kFail, text()};
  }
}

std::string test_name_of(const std::string& check) {
  std::string name = check;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string replay_of_test(const std::string& full_test_name) {
  std::error_code error;
  std::string program =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error || program.empty()) program = "the-test";
  return shell_quote(program) +
         " --gtest_filter=" + shell_quote(full_test_name);
}

}  // namespace attnguard
