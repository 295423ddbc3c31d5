// What a failing engine behaves like: its outputs on a fixed battery of calls
// are compared, element by element, with those of every known defect and of
// every other reading of the problem.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_MATCH_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_MATCH_H_

#include <cstdint>
#include <optional>

#include "guard/engine/engine.h"
#include "guard/finding/diagnosis.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Diagnoses an engine that fails on `smallest`, and on `original`, from which
// that was shrunk (the same problem when it was not).
//
// An explanation must reproduce every call of the battery on both problems,
// also those in which the engine is correct. Where several do, further
// problems are tried on which they differ: where they show and hide according
// to the table, and relatives of the failing one. The engine runs those that
// it supports, and what it returns decides; the others are named. Of what is
// left, one that agrees with the engine sixteen times closer than another
// (beyond rounding of the output) wins; then the table's order, which goes
// from plain causes to those that need more to be said.
//
// nullopt when there is nothing to explain (the engine is correct in every
// call: the fault is one of memory or of repeatability), the engine fails, or
// the problem is so large that comparing would take longer than a few seconds.
//
// Costs about ten engine calls for each problem tried, eight problems at most.
// The result does not depend on the number of threads.
std::optional<Diagnosis> diagnose(const Engine& engine, const Problem& smallest,
                                  const Problem& original, std::uint64_t seed);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_MATCH_H_
