// Other readings of a problem: what an engine computes that is correct, but
// means another mask or scale by the same words. Many reports of wrong masks
// are of this kind, and calling them a bug would mislead.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_CONVENTIONS_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_CONVENTIONS_H_

#include <string>
#include <vector>

#include "guard/problem/problem.h"

namespace attnguard {

struct Convention {
  // Names the reading whatever the problem: "alignment", "window one more on
  // the left". The same id is asked of further problems.
  std::string id;

  // The problem as such an engine reads it: same shapes, valid.
  Problem problem;

  // "consistent with causal_bottom_right; the policy says causal_top_left"
  std::string statement;
};

// Those that fit the problem and differ from it in the mask or the scale, each
// id once. One that allows the same keys as the problem may be among them.
std::vector<Convention> alternative_conventions(const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_CONVENTIONS_H_
