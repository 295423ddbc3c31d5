#include "guard/model/verify_model.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "guard/base/text.h"
#include "guard/model/model_check.h"
#include "guard/model/token_map.h"

namespace attnguard {
namespace {

constexpr std::int64_t kFewestTokens = 4;

Status check_model(const Model& model) {
  if (!model.decode) return invalid_argument("the model has no decode");
  if (model.incremental && !model.clear)
    return invalid_argument(
        "the model is incremental and has no clear: give one, or set "
        "incremental = false");
  if (model.vocab_size < 2)
    return invalid_argument(fmt::format(
        "vocab_size is {}: the checks need two tokens to tell apart",
        model.vocab_size));
  if (model.max_sequences < 1)
    return invalid_argument(
        fmt::format("max_sequences is {}", model.max_sequences));
  if (!(model.roundoff >= 0 && model.roundoff < 1))
    return invalid_argument(
        fmt::format("roundoff is {}: it is that of a dtype, such as 2^-24",
                    model.roundoff));
  return ok_status();
}

Status check_options(const Model& model, const ModelOptions& options) {
  const std::int64_t size =
      options.text.empty() ? options.num_tokens
                           : static_cast<std::int64_t>(options.text.size());
  if (size < kFewestTokens)
    return invalid_argument(fmt::format(
        "{} tokens are too few: the checks need {}", size, kFewestTokens));
  if (model.context_length > 0 && model.context_length < kFewestTokens)
    return invalid_argument(
        fmt::format("the model's context of {} tokens is too short: the checks "
                    "need {}",
                    model.context_length, kFewestTokens));
  if (model.context_length > 0 && !options.text.empty() &&
      size > model.context_length)
    return invalid_argument(
        fmt::format("the text of {} tokens is longer than the model's context "
                    "of {}",
                    size, model.context_length));
  for (const std::int32_t token : options.text)
    if (token < 0 || token >= model.vocab_size)
      return invalid_argument(fmt::format(
          "token {} of the text is none of the model's vocabulary: 0 to {}",
          token, model.vocab_size - 1));
  if (!(options.rounding > 0))
    return invalid_argument(fmt::format(
        "rounding is {}: it is a positive factor", options.rounding));
  for (const std::string& id : options.checks)
    if (find_model_check(id) == nullptr)
      return invalid_argument("unknown check '" + id + "'" +
                              suggestion(id, model_check_ids()));
  return ok_status();
}

bool is_wanted(const ModelOptions& options, std::string_view id) {
  if (options.checks.empty()) return true;
  for (const std::string& wanted : options.checks)
    if (wanted == id) return true;
  return false;
}

CheckResult run_check(const ModelCheckInfo& check, ModelCheckContext& context) {
  CheckResult result{.check = std::string(check.id)};
  result.note = check.not_applicable(context.model);
  if (!result.note.empty()) return result;
  const Status status = check.run(context, result);
  if (status.ok()) return result;
  return {.check = std::string(check.id),
          .verdict = Verdict::kEngineError,
          .note = status.message()};
}

Verdict combine(const std::vector<CheckResult>& checks) {
  const Verdict verdict = combine_checks(checks);
  if (verdict == Verdict::kViolation) return verdict;
  for (const CheckResult& check : checks)
    if (check.verdict == Verdict::kEngineError) return check.verdict;
  return verdict;
}

void run_checks(ModelCheckContext& context, ModelResult& result) {
  result.num_tokens = context.length();
  const Status prepared = context.prepare();
  if (!prepared.ok()) {
    result.verdict = Verdict::kEngineError;
    result.note = prepared.message();
    return;
  }
  for (const ModelCheckInfo* check : all_model_checks())
    if (is_wanted(context.options, check->id))
      result.checks.push_back(run_check(*check, context));
  result.verdict = combine(result.checks);
  result.loss = context.loss;
  if (!context.options.map || result.verdict == Verdict::kEngineError) return;
  Result<InfluenceMap> map =
      result.verdict == Verdict::kViolation
          ? smallest_token_map(context)
          : token_map(context, std::min<std::int64_t>(8, context.length()),
                      false);
  if (map.ok()) result.map = std::move(map.value());
}

}  // namespace

ModelResult verify_model(const Model& model, const ModelOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  ModelResult result{.model = model.name,
                     .description = model.description,
                     .seed = options.seed,
                     .random_tokens = options.text.empty(),
                     .rounding = options.rounding};
  Status status = check_model(model);
  if (!status.ok()) {
    result.verdict = Verdict::kEngineError;
    result.note = status.message();
    return result;
  }
  status = check_options(model, options);
  if (!status.ok()) {
    result.note = status.message();
    return result;
  }
  try {
    ModelCheckContext context(model, options);
    run_checks(context, result);
    result.model_calls = context.runner.calls();
    result.model_seconds = context.runner.seconds();
  } catch (const std::exception& error) {
    result.verdict = Verdict::kEngineError;
    result.note = std::string("the checks ended early: ") + error.what();
  }
  const std::chrono::duration<double> all =
      std::chrono::steady_clock::now() - begin;
  result.guard_seconds = std::max(0.0, all.count() - result.model_seconds);
  return result;
}

RunResult as_run_result(const ModelResult& result) {
  ProblemResult problem;
  problem.problem.seq_len_q = {result.num_tokens};
  problem.problem.seq_len_kv = {result.num_tokens};
  problem.problem_line =
      fmt::format("tokens={} seed={}", result.num_tokens, result.seed);
  problem.verdict = result.verdict;
  problem.note = result.note;
  problem.engine_calls = result.model_calls;
  problem.engine_seconds = result.model_seconds;
  problem.guard_seconds = result.guard_seconds;
  problem.checks = result.checks;
  problem.map = result.map;
  problem.replay = result.replay;
  RunResult run;
  run.engine = result.model;
  run.policy = "built-in";
  run.seed = result.seed;
  run.verdict = result.verdict;
  run.problems.push_back(std::move(problem));
  return run;
}

}  // namespace attnguard
