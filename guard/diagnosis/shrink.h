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

// Valid problems that are one step smaller, smallest first: fewer queries,
// keys, entries, heads or channels; the lengths between half of what can go
// and one token. Never below 5 tokens and 16 channels, of which a map can be
// read. Taking the first that fails until none does ends at a problem that
// nothing can be taken from.
std::vector<Problem> shrink_steps(const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_SHRINK_H_
