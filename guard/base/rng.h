// Counter-based random numbers: a value is a pure function of a seed and a
// position, so any element of any tensor can be drawn on its own, in any order
// and by any number of threads, with the same result.
//
// The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014).
#ifndef ATTNGUARD_GUARD_BASE_RNG_H_
#define ATTNGUARD_GUARD_BASE_RNG_H_

#include <bit>
#include <cstdint>

namespace attnguard {

constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Combines a seed with one more coordinate; chain it for several.
constexpr std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t part) {
  return mix_bits(seed ^ mix_bits(part));
}

// Uniform in [0, bound). The bias is below bound / 2^32: bounds here are
// sequence lengths.
constexpr std::int64_t uniform_below(std::uint64_t bits, std::int64_t bound) {
  return static_cast<std::int64_t>(
      ((bits >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
}

// Mean 0, variance 1, |x| < 2.45: the sum of two 16-bit uniforms. Close enough
// to a normal for attention inputs and far cheaper than one. Takes 32 bits.
constexpr double near_normal(std::uint64_t bits) {
  const auto sum = static_cast<std::int32_t>(bits & 0xffff) +
                   static_cast<std::int32_t>((bits >> 16) & 0xffff);
  // Two uniforms on [0, 65536) have standard deviation 65536 / sqrt(6).
  return static_cast<double>(sum - 65535) * (2.449489742783178 / 65536.0);
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_RNG_H_
