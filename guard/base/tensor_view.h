// A strided view of a 4-d tensor, any layout, no ownership.
//
// The logical axes are always [batch, head, position, channel]; strides count
// elements and say where each logical element lies, so BHSD, BSHD, SBHD and
// padded rows are the same type with other strides.
#ifndef ATTNGUARD_GUARD_BASE_TENSOR_VIEW_H_
#define ATTNGUARD_GUARD_BASE_TENSOR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "guard/base/dtype.h"

namespace attnguard {

using Shape4 = std::array<std::int64_t, 4>;  // batch, head, position, channel

// Element strides of a dense tensor of this shape in the logical axis order.
constexpr Shape4 contiguous_strides(const Shape4& shape) {
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

template <typename Byte>
struct BasicTensorView {
  Byte* data = nullptr;
  Dtype dtype = Dtype::kFp32;
  Shape4 shape = {0, 0, 0, 0};
  Shape4 strides = {0, 0, 0, 0};

  std::int64_t offset(std::int64_t batch, std::int64_t head,
                      std::int64_t position, std::int64_t channel = 0) const {
    return batch * strides[0] + head * strides[1] + position * strides[2] +
           channel * strides[3];
  }

  Byte* at(std::int64_t batch, std::int64_t head, std::int64_t position,
           std::int64_t channel = 0) const {
    return data + offset(batch, head, position, channel) *
                      static_cast<std::int64_t>(dtype_size(dtype));
  }

  // Reads or writes `count` channels of one row, from channel `first`.
  void load_row(std::int64_t batch, std::int64_t head, std::int64_t position,
                std::int64_t first, std::int64_t count, double* to) const {
    decode(dtype, at(batch, head, position, first), strides[3], count, to);
  }
  void store_row(std::int64_t batch, std::int64_t head, std::int64_t position,
                 std::int64_t first, std::int64_t count,
                 const double* from) const {
    encode(dtype, from, count, at(batch, head, position, first), strides[3]);
  }

  operator BasicTensorView<const Byte>() const {
    return {data, dtype, shape, strides};
  }
};

using TensorView = BasicTensorView<std::byte>;
using ConstTensorView = BasicTensorView<const std::byte>;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_TENSOR_VIEW_H_
