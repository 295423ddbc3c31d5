// The positive control of checks that no single output value could fail: the
// random base call must give more than one constant.
#ifndef ATTNGUARD_GUARD_CHECK_CONTROL_H_
#define ATTNGUARD_GUARD_CHECK_CONTROL_H_

#include <memory>

#include "guard/check/check.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"

namespace attnguard {

// Plans the random base call, which checks share, and watches its output. An
// engine that fills its output with one value passes every row sum of one; it
// does not pass this.
class ReactsToInputs {
 public:
  static constexpr std::string_view kMissing =
      "the output of random inputs is one constant, so the engine does not "
      "react to its inputs";

  Ticket plan(Plan& plan, const CheckContext& context) {
    const std::uint64_t seed = base_seed(context.seed);
    ticket_ =
        plan.request(std::make_shared<RandomScores>(context.problem, seed),
                     std::make_shared<RandomValues>(context.problem, seed));
    return ticket_;
  }

  void judge(const Observation& seen) {
    if (seen.call != ticket_.call || fired_) return;
    const Problem& problem = *seen.problem;
    const auto columns = static_cast<std::size_t>(problem.head_dim_v);
    std::vector<double> row(columns);
    std::int64_t elements = 0;
    double first = 0;
    for_each_row(problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                              const KeyRanges&) {
      if (fired_) return;
      seen.output.load_row(b, h, i, 0, problem.head_dim_v, row.data());
      if (elements == 0) first = row[0];
      elements += problem.head_dim_v;
      for (double x : row) fired_ |= x != first;
    });
    // A single element is no constant to tell from; that it is a value at all
    // is for `reference` to judge.
    fired_ |= elements == 1;
  }

  bool fired() const { return fired_; }

 private:
  Ticket ticket_;
  bool fired_ = false;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_CONTROL_H_
