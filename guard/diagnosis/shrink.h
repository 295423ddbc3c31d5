// Smaller problems that keep the character of a failing one: candidates for
// the smallest failing case.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_SHRINK_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_SHRINK_H_

#include <vector>

#include "guard/problem/problem.h"

namespace attnguard {

// Valid problems, smallest first, that have the same mask kinds, dtypes and
// scale: short lengths with one batch entry and head, then with the original
// heads and batch, then longer. The original itself is not among them.
std::vector<Problem> shrink_candidates(const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_SHRINK_H_
