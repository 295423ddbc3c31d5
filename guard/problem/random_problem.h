// Random valid problems: what correct engines are run on to see that the guard
// stays silent, and what finds the corners that nobody listed.
#ifndef ATTNGUARD_GUARD_PROBLEM_RANDOM_PROBLEM_H_
#define ATTNGUARD_GUARD_PROBLEM_RANDOM_PROBLEM_H_

#include <cstdint>

#include "guard/problem/problem.h"

namespace attnguard {

enum class Variety {
  kShapes,  // Padded tensors and plain scores: what any kernel takes.
  kAll,     // Every modifier, mask form and placement too.
};

// The problem of a seed; the same seed gives the same problem. Always valid.
//
// Lengths lie around tile edges (0 to 150, ragged or not), head dims on and off
// the vector width, with every dtype, output dtype, head grouping, layout,
// padded strides, scale, soft-cap, ALiBi, sinks, empty-row rule, mask form,
// packed and paged placement. Masks are drawn from the table of mask kinds with
// parameters from the kind's own description, one or two terms each, so a new
// kind takes part without a line here.
Problem random_problem(std::uint64_t seed, Variety variety = Variety::kAll);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_RANDOM_PROBLEM_H_
