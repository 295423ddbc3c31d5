// Rows that may attend to nothing: what they give differs between engines.
#ifndef ATTNGUARD_GUARD_PROBLEM_EMPTY_ROWS_H_
#define ATTNGUARD_GUARD_PROBLEM_EMPTY_ROWS_H_

#include "guard/problem/problem.h"

namespace attnguard {

// Whether some row of some entry has no allowed key.
bool has_empty_row(const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_EMPTY_ROWS_H_
