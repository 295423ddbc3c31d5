// Short vectors of float or double and their exponential, for kernels that are
// compiled once per instruction set (see tile_kernel.h).
//
// Everything here is always inlined into its caller and takes vectors by
// reference, so that the caller's instruction set decides how it is compiled
// and no vector crosses an ABI. No product is fused with a sum: the results
// are the same bits on every instruction set.
#ifndef ATTNGUARD_ADAPTERS_PLAIN_LANES_H_
#define ATTNGUARD_ADAPTERS_PLAIN_LANES_H_

#include <cstdint>
#include <cstring>

#define ATTNGUARD_INLINE inline __attribute__((always_inline))

namespace attnguard {

// kExpDegree: Taylor terms for which |r| <= ln(2) / 2 leaves an error far
// below the last bit. Arguments under kExpLowest give 0.
template <typename Real>
struct Lanes;

template <>
struct Lanes<float> {
  typedef float Vector __attribute__((vector_size(32)));
  typedef std::uint32_t Bits __attribute__((vector_size(32)));
  static constexpr int kCount = 8;
  static constexpr int kExpDegree = 7;
  static constexpr float kExpLowest = -87.0f;
  static constexpr float kLog2E = 1.44269504f;
  static constexpr float kLn2High = 0.693359375f;  // few bits: n * it is exact
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kRound = 0x1.8p23f;  // x + it - it rounds to integer
  static constexpr std::uint32_t kOneBits = 0x3f800000;
  static constexpr int kMantissaBits = 23;
};

template <>
struct Lanes<double> {
  typedef double Vector __attribute__((vector_size(32)));
  typedef std::uint64_t Bits __attribute__((vector_size(32)));
  static constexpr int kCount = 4;
  static constexpr int kExpDegree = 13;
  static constexpr double kExpLowest = -708.0;
  static constexpr double kLog2E = 1.4426950408889634;
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kRound = 0x1.8p52;
  static constexpr std::uint64_t kOneBits = 0x3ff0000000000000;
  static constexpr int kMantissaBits = 52;
};

template <typename Real>
using Vector = typename Lanes<Real>::Vector;

// No alignment is required of `from` and `to`.
template <typename Real>
ATTNGUARD_INLINE void load(const Real* from, Vector<Real>& to) {
  std::memcpy(&to, from, sizeof(to));
}

template <typename Real>
ATTNGUARD_INLINE void store(const Vector<Real>& from, Real* to) {
  std::memcpy(to, &from, sizeof(from));
}

// sum += x * y, rounded twice.
template <typename Real>
ATTNGUARD_INLINE void add_product(const Real x, const Vector<Real>& y,
                                  Vector<Real>& sum) {
  const Vector<Real> product = x * y;
  sum = sum + product;
}

// x = exp(x) for x <= 0 or NaN, within 2 ulp; exactly 1 at 0 and exactly 0
// below kExpLowest. x = n ln 2 + r; exp(x) = 2^n exp(r).
template <typename Real>
ATTNGUARD_INLINE void exp_lanes(Vector<Real>& x) {
  using L = Lanes<Real>;
  using Bits = typename L::Bits;
  const Vector<Real> zero = {};
  const Vector<Real> shifted = x * L::kLog2E;
  const Vector<Real> rounded = shifted + L::kRound;
  const Vector<Real> n = rounded - L::kRound;
  const Vector<Real> high = n * L::kLn2High;
  const Vector<Real> low = n * L::kLn2Low;
  const Vector<Real> r = (x - high) - low;
  Vector<Real> sum = zero + Real{1};
  // Horner: 1 + r/1 (1 + r/2 (1 + r/3 (...))).
#pragma GCC unroll 13
  for (int k = L::kExpDegree; k >= 1; --k) {
    const Vector<Real> ratio = r * (Real{1} / static_cast<Real>(k));
    const Vector<Real> product = sum * ratio;
    sum = product + Real{1};
  }
  // The integer n stands in the low bits of `rounded`.
  Bits power;
  std::memcpy(&power, &rounded, sizeof(power));
  power = (power << L::kMantissaBits) + L::kOneBits;
  Vector<Real> factor;
  std::memcpy(&factor, &power, sizeof(factor));
  const Vector<Real> result = sum * factor;
  x = x < L::kExpLowest ? zero : result;
}

template <typename Real>
ATTNGUARD_INLINE Real largest_lane(const Vector<Real>& x) {
  Real largest = x[0];
  for (int i = 1; i < Lanes<Real>::kCount; ++i)
    largest = x[i] > largest ? x[i] : largest;
  return largest;
}

template <typename Real>
ATTNGUARD_INLINE Real sum_of_lanes(const Vector<Real>& x) {
  Real sum = x[0];
  for (int i = 1; i < Lanes<Real>::kCount; ++i) sum = sum + x[i];
  return sum;
}

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_LANES_H_
