// What `weights` and `lse` share: the random base call once more with one more
// output asked for, which must be right and must not change the first.
#ifndef ATTNGUARD_GUARD_CHECK_SIDE_OUTPUTS_H_
#define ATTNGUARD_GUARD_CHECK_SIDE_OUTPUTS_H_

#include <memory>
#include <string>

#include "guard/check/check.h"

namespace attnguard {

std::unique_ptr<Check> make_lse_check(const CheckContext& context);
std::unique_ptr<Check> make_weights_check(const CheckContext& context);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_SIDE_OUTPUTS_H_
