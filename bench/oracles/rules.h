// The rules by which two outputs are compared, on plain numbers. NaN is never
// close to anything.
#ifndef ATTNGUARD_BENCH_ORACLES_RULES_H_
#define ATTNGUARD_BENCH_ORACLES_RULES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "guard/base/dtype.h"

namespace attnguard {

struct Closeness {
  double relative = 0;
  double absolute = 0;
};

// The defaults of torch.testing.assert_close.
inline Closeness default_closeness(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64:
      return {1e-7, 1e-7};
    case Dtype::kFp32:
      return {1.3e-6, 1e-5};
    case Dtype::kFp16:
      return {1e-3, 1e-5};
    case Dtype::kBf16:
      return {1.6e-2, 1e-5};
  }
  return {};
}

// Elements with !(|actual - expected| <= absolute + relative |expected|).
inline std::size_t count_not_close(std::span<const double> actual,
                                   std::span<const double> expected,
                                   const Closeness& limit) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < actual.size(); ++n)
    if (!(std::abs(actual[n] - expected[n]) <=
          limit.absolute + limit.relative * std::abs(expected[n])))
      ++count;
  return count;
}

// mean((actual - expected)^2) / mean(expected^2). 0 when both are zero
// throughout.
inline double normalised_mean_square_error(std::span<const double> actual,
                                           std::span<const double> expected) {
  double error = 0, size = 0;
  for (std::size_t n = 0; n < actual.size(); ++n) {
    const double difference = actual[n] - expected[n];
    error += difference * difference;
    size += expected[n] * expected[n];
  }
  return error == 0 ? 0 : error / size;
}

// max |actual - expected|; infinite when a difference is NaN.
inline double largest_error(std::span<const double> actual,
                            std::span<const double> expected) {
  double largest = 0;
  for (std::size_t n = 0; n < actual.size(); ++n) {
    const double difference = std::abs(actual[n] - expected[n]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_RULES_H_
