#include "bench/oracles/oracle_table.h"
#include "guard/pipeline.h"

namespace attnguard {
namespace {

Opinion opinion_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return Opinion::kFine;
    case Verdict::kViolation:
    case Verdict::kEngineError:
      return Opinion::kAlarm;
    case Verdict::kInconclusive:
    case Verdict::kNotApplicable:
    case Verdict::kUnsupported:
      break;
  }
  return Opinion::kNone;
}

}  // namespace

const Oracle kOracleAttnguard = {
    .id = "attnguard",
    .summary = "all checks with the built-in settings",
    .judge = [](const OracleCase& subject) -> Judgement {
      Settings settings = default_policy().resolve(subject.engine.name);
      settings.seed = subject.seed;
      RunOptions options;
      options.draw_maps = false;
      const ProblemResult result =
          verify_problem(subject.engine, subject.problem, settings, options);
      std::string why(verdict_name(result.verdict));
      for (const CheckResult& check : result.checks)
        if (check.verdict == Verdict::kViolation) why += " " + check.check;
      return {opinion_of(result.verdict), result.engine_calls, std::move(why)};
    },
};

}  // namespace attnguard
