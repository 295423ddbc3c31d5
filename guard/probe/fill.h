// What the tensors of a call hold, row by row: the patterns of its plan where
// a token lies, and what the call's mode says where none does.
#ifndef ATTNGUARD_GUARD_PROBE_FILL_H_
#define ATTNGUARD_GUARD_PROBE_FILL_H_

#include <cstddef>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/guarded_buffer.h"
#include "guard/probe/plan.h"

namespace attnguard {

// Rows of the query, key or value tensor of the call. `largest` is the largest
// input that the engine takes. The filler keeps the patterns alive and copies
// nothing else: `problem` must outlive it.
RowFiller row_filler(const Problem& problem, const PlannedCall& planned,
                     TensorRole role, double largest);

// What the cache holds where a token is not written yet: another token.
RowFiller stale_filler(const Problem& problem, const PlannedCall& planned,
                       TensorRole role, double largest);

// A mask given as a tensor, [batch, seq_len_q, seq_len_kv]; empty when the
// problem implies it. Places of padding are masked.
std::vector<std::byte> mask_bytes(const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_FILL_H_
