#include "bench/oracles/oracle_table.h"
#include "bench/oracles/rules.h"

namespace attnguard {
namespace {

// max_nmse_err of test_flash_attn_ext.
constexpr double kLimit = 5e-4;

}  // namespace

const Oracle kOracleNmse = {
    .id = "nmse",
    .summary =
        "random inputs; normalised mean square error of the whole tensor at "
        "most 5e-4, as llama.cpp's test-backend-ops",
    .judge = [](const OracleCase& subject) -> Judgement {
      const Result<Outputs> actual =
          random_outputs(subject.engine, subject.problem, subject.seed);
      if (!actual.ok()) return {Opinion::kAlarm, 1, actual.status().message()};
      if (actual.value().empty()) return {Opinion::kNone, 1, "no rows"};
      const double error = normalised_mean_square_error(
          actual.value(),
          subject.references.exact(subject.problem, subject.seed));
      return alarm_if(!(error <= kLimit), 1, "nmse " + std::to_string(error));
    },
};

}  // namespace attnguard
