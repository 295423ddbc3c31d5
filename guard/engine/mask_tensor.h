// The keys that a row of a call may attend to, however the engine is told.
#ifndef ATTNGUARD_GUARD_ENGINE_MASK_TENSOR_H_
#define ATTNGUARD_GUARD_ENGINE_MASK_TENSOR_H_

#include "guard/engine/engine.h"

namespace attnguard {

// From the mask tensor where one is given (in host memory), otherwise what the
// problem's mask says. `keys` is overwritten.
void allowed_keys(const AttentionCall& call, const RowPlace& place,
                  KeyRanges& keys);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_MASK_TENSOR_H_
