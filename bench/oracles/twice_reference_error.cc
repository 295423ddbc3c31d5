#include "bench/oracles/oracle_table.h"
#include "bench/oracles/rules.h"

namespace attnguard {
namespace {

constexpr double kFactor = 2;
constexpr double kAbsolute = 1e-5;

}  // namespace

// tests/test_flash_attn.py of FlashAttention 2, in its variable-length,
// split-KV and KV-cache tests:
//
//   max|out - out_ref| <= 2 * max|out_pt - out_ref| + 1e-5
//
// with out_ref computed wide and rounded to the dtype, and out_pt computed in
// the dtype. (Version 3 adds twice the rounding of one addition to out_ref in
// place of the 1e-5.)
const Oracle kOracleTwiceReferenceError = {
    .id = "twice-reference-error",
    .summary =
        "random inputs; largest error at most twice that of plain attention in "
        "the same dtype, plus 1e-5, as FlashAttention 2's tests",
    .judge = [](const OracleCase& subject) -> Judgement {
      const Result<Outputs> actual =
          random_outputs(subject.engine, subject.problem, subject.seed);
      if (!actual.ok()) return {Opinion::kAlarm, 1, actual.status().message()};
      if (actual.value().empty()) return {Opinion::kNone, 1, "no rows"};
      const Outputs& exact =
          subject.references.exact(subject.problem, subject.seed);
      const double error = largest_error(actual.value(), exact);
      const double limit =
          kFactor * largest_error(subject.references.low_precision(
                                      subject.problem, subject.seed),
                                  exact) +
          kAbsolute;
      return alarm_if(!(error <= limit), 1,
                      "largest error " + std::to_string(error) + ", limit " +
                          std::to_string(limit));
    },
};

}  // namespace attnguard
