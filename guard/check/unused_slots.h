// What unused-slots and unused-slots-nan share: the same call once more with
// other contents in every place that no row may read.
#ifndef ATTNGUARD_GUARD_CHECK_UNUSED_SLOTS_H_
#define ATTNGUARD_GUARD_CHECK_UNUSED_SLOTS_H_

#include <memory>
#include <string>

#include "guard/check/check.h"

namespace attnguard {

// `fill` is kLarge or kNan.
std::unique_ptr<Check> make_unused_slots(const CheckContext& context,
                                         UnusedFill fill);

// Why there is no such place, or empty.
std::string no_unused_slot(const CheckContext& context);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_UNUSED_SLOTS_H_
