// How many tokens an append can be tried with.
#ifndef ATTNGUARD_GUARD_PROBE_APPENDABLE_H_
#define ATTNGUARD_GUARD_PROBE_APPENDABLE_H_

#include <algorithm>

#include "guard/problem/problem.h"

namespace attnguard {

// The last tokens of every entry that can be left out of its cache and
// appended, at most three: 0 where an entry has none of its own, and where
// there is no cache with room (packed keys).
inline std::int64_t most_tokens_to_append(const Problem& problem) {
  if (problem.packed && problem.block_size == 0) return 0;
  std::int64_t count = 3;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    count = std::min(count, problem.len_kv(b) - problem.shared_prefix);
  return std::max<std::int64_t>(count, 0);
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_APPENDABLE_H_
