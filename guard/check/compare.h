// Comparing the same row in two outputs, and short numbers for messages.
#ifndef ATTNGUARD_GUARD_CHECK_COMPARE_H_
#define ATTNGUARD_GUARD_CHECK_COMPARE_H_

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "guard/base/tensor_view.h"

namespace attnguard {

// Bit for bit: NaN equals the same NaN, 0 does not equal -0.
inline bool rows_equal(const ConstTensorView& a, const ConstTensorView& b,
                       std::int64_t batch, std::int64_t head,
                       std::int64_t position) {
  const std::size_t size = dtype_size(a.dtype);
  if (a.strides[3] == 1 && b.strides[3] == 1)
    return std::memcmp(a.at(batch, head, position), b.at(batch, head, position),
                       size * static_cast<std::size_t>(a.shape[3])) == 0;
  for (std::int64_t c = 0; c < a.shape[3]; ++c)
    if (std::memcmp(a.at(batch, head, position, c),
                    b.at(batch, head, position, c), size) != 0)
      return false;
  return true;
}

// Largest |a - b| of the row; NaN when one of them is NaN and the bits differ.
inline double largest_difference(const ConstTensorView& a,
                                 const ConstTensorView& b, std::int64_t batch,
                                 std::int64_t head, std::int64_t position) {
  const auto count = static_cast<std::size_t>(a.shape[3]);
  std::vector<double> left(count), right(count);
  a.load_row(batch, head, position, 0, a.shape[3], left.data());
  b.load_row(batch, head, position, 0, b.shape[3], right.data());
  double largest = 0;
  for (std::size_t c = 0; c < count; ++c) {
    const double difference = std::abs(left[c] - right[c]);
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

// Three significant digits: for messages, not for data.
inline std::string format_short(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", value);
  return text;
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_COMPARE_H_
