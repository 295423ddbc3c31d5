// Which calls are looked at, and which rows of them: counter-based random
// numbers, so that nothing is shared between threads.
#ifndef ATTNGUARD_GUARD_RUNTIME_SAMPLER_H_
#define ATTNGUARD_GUARD_RUNTIME_SAMPLER_H_

#include <cstdint>

#include "guard/check/reference_rows.h"
#include "guard/problem/problem.h"

namespace attnguard::runtime_internal {

// Larger than any number of calls: never.
inline constexpr std::int64_t kNever = std::int64_t{1} << 62;

// Calls until the next one that is looked at, 1 or more, of mean `mean`: each
// call has the same chance whatever came before, so that no rhythm of layers
// hides one. `mean` <= 0: kNever.
std::int64_t draw_gap(std::uint64_t bits, double mean);

// A query row of the call. Half of all draws fall on first and last rows and
// on the edges of tiles of 16 to 256 rows; every row has a chance. False when
// no entry has a query. `bits` are of one draw; call it with others for more.
bool pick_row(const Problem& problem, std::uint64_t bits, RowIndex& row);

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_SAMPLER_H_
