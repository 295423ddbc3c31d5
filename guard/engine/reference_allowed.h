// The fp64 row for callers that know a row's keys otherwise than by
// Problem::mask.
#ifndef ATTNGUARD_GUARD_ENGINE_REFERENCE_ALLOWED_H_
#define ATTNGUARD_GUARD_ENGINE_REFERENCE_ALLOWED_H_

#include "guard/engine/reference.h"
#include "guard/problem/key_ranges.h"

namespace attnguard {

// As reference_row, for a row that sees `allowed`, keys within
// [0, seq_len_kv of the entry), whatever the problem's mask says.
void reference_row_of(const ReferenceInputs& inputs, std::int64_t batch,
                      std::int64_t head, std::int64_t q_index,
                      const KeyRanges& allowed, ReferenceRow& row);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_REFERENCE_ALLOWED_H_
