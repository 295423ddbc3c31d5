// V = 1 in one column: the row's output there is the sum of its weights.
#ifndef ATTNGUARD_GUARD_PROBE_ONES_H_
#define ATTNGUARD_GUARD_PROBE_ONES_H_

#include "guard/probe/pattern.h"

namespace attnguard {

class Ones final : public ValuePattern {
 public:
  std::string name() const override { return "ones"; }
  std::int64_t columns() const override { return 1; }
  void value_row(std::int64_t, std::int64_t, std::int64_t,
                 double* to) const override {
    to[0] = 1;
  }
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_ONES_H_
