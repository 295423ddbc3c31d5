// Shared by the mask kinds: keys [begin, end), as far as they exist.
#ifndef ATTNGUARD_GUARD_PROBLEM_MASK_APPEND_CLIPPED_H_
#define ATTNGUARD_GUARD_PROBLEM_MASK_APPEND_CLIPPED_H_

#include <algorithm>
#include <cstdint>

#include "guard/problem/key_ranges.h"

namespace attnguard {

inline void append_clipped(std::int64_t begin, std::int64_t end,
                           std::int64_t seq_len_kv, KeyRanges& out) {
  out.append(std::max<std::int64_t>(begin, 0), std::min(end, seq_len_kv));
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_MASK_APPEND_CLIPPED_H_
