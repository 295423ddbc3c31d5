// What prefix-, decode- and batch-consistency share: parts of the problem are
// run as problems of their own, and their rows must agree with the whole's
// within what rounding explains.
#ifndef ATTNGUARD_GUARD_CHECK_SLICES_H_
#define ATTNGUARD_GUARD_CHECK_SLICES_H_

#include <memory>
#include <vector>

#include "guard/check/check.h"
#include "guard/probe/slice.h"

namespace attnguard {

// nullptr entries, and those that the engine does not support, are left out.
using Slices = std::vector<std::shared_ptr<const Slice>>;

Slices runnable_slices(const CheckContext& context, const Slices& candidates);

std::unique_ptr<Check> make_slices(const CheckContext& context, Slices slices);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_SLICES_H_
