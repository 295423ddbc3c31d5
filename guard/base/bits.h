// Counting bits.
#ifndef ATTNGUARD_GUARD_BASE_BITS_H_
#define ATTNGUARD_GUARD_BASE_BITS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace attnguard {

// How many bits tell `count` things apart; 0 for one or none.
inline int bits_for(std::int64_t count) {
  return static_cast<int>(std::bit_width(
      static_cast<std::uint64_t>(std::max<std::int64_t>(count - 1, 0))));
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_BITS_H_
