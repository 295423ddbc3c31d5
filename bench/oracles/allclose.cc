#include "bench/oracles/oracle_table.h"

namespace attnguard {

Judgement judge_closeness(const OracleCase& subject, const Closeness& limit) {
  const Result<Outputs> actual =
      random_outputs(subject.engine, subject.problem, subject.seed);
  if (!actual.ok()) return {Opinion::kAlarm, 1, actual.status().message()};
  if (actual.value().empty()) return {Opinion::kNone, 1, "no rows"};
  const std::size_t wrong = count_not_close(
      actual.value(), subject.references.exact(subject.problem, subject.seed),
      limit);
  return alarm_if(wrong > 0, 1,
                  std::to_string(wrong) + " of " +
                      std::to_string(actual.value().size()) +
                      " elements are not close");
}

const Oracle kOracleAllclose = {
    .id = "allclose",
    .summary =
        "random inputs; every element close to fp64 attention rounded to the "
        "dtype, with the tolerances of torch.testing.assert_close",
    .judge = [](const OracleCase& subject) -> Judgement {
      return judge_closeness(subject,
                             default_closeness(subject.problem.output_dtype()));
    },
};

}  // namespace attnguard
