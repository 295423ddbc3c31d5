// The sizes at which defects that depend on one show: small, so that short
// problems reach them.
#ifndef ATTNGUARD_GUARD_DEFECT_SIZES_H_
#define ATTNGUARD_GUARD_DEFECT_SIZES_H_

#include <cstdint>

namespace attnguard {

constexpr std::int64_t kTile = 16;        // Keys or queries of a compute tile.
constexpr std::int64_t kWideTile = 32;    // A tile that is wider than a vector.
constexpr std::int64_t kBlock = 16;       // Tokens of a block of the cache.
constexpr std::int64_t kScaleBlock = 32;  // Elements that share one scale.
constexpr std::int64_t kLanes = 16;       // Channels of a vector register.
constexpr double kInt8Steps = 127;        // Largest code of a signed byte.

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DEFECT_SIZES_H_
