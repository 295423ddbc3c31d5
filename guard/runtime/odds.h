// How soon the live guard sees a fault: the arithmetic of sampling.
#ifndef ATTNGUARD_GUARD_RUNTIME_ODDS_H_
#define ATTNGUARD_GUARD_RUNTIME_ODDS_H_

#include <cstdint>

#include "guard/policy/runtime_policy.h"

namespace attnguard {

// The rows that `recompute` draws fall on first rows, last rows and tile edges
// more often than chance would have it. A row that is none of these is drawn
// with this share of its fair chance: what odds are stated with.
inline constexpr double kFairShareOfDraws = 0.5;

// The chance that one call that is looked at shows a fault which makes the
// share `wrong` of its rows wrong (0 < wrong <= 1), when `rows` are drawn
// independently and computed again:
//
//   1 - (1 - f)^k    f = kFairShareOfDraws * wrong (1 when all rows are wrong)
//                    k = rows
double chance_per_look(double wrong, std::int64_t rows);

// Calls after which the fault was seen with this certainty, when one call in
// `sample_every` is looked at, each with the same chance whatever came before:
// the smallest n with
//
//   1 - (1 - chance / sample_every)^n >= certainty
//
// Infinite when nothing is looked at.
double calls_until_seen(double chance, std::int64_t sample_every,
                        double certainty);

// The certainty after so many calls.
double certainty_after(double chance, std::int64_t sample_every, double calls);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_ODDS_H_
