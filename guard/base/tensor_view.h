// A strided view of a 4-d tensor, any layout, no ownership.
//
// The logical axes are always [batch, head, position, channel]; strides count
// elements and say where each logical element lies, so BHSD, BSHD, SBHD and
// padded rows are the same type with other strides. Tokens that are packed one
// sequence after another or that lie in pages are reached through a TokenMap.
#ifndef ATTNGUARD_GUARD_BASE_TENSOR_VIEW_H_
#define ATTNGUARD_GUARD_BASE_TENSOR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "guard/base/dtype.h"

namespace attnguard {

using Shape4 = std::array<std::int64_t, 4>;  // batch, head, position, channel

// Element strides of a dense tensor of this shape in the logical axis order.
constexpr Shape4 contiguous_strides(const Shape4& shape) {
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

// Where the tokens of a packed or paged tensor lie: `position` of `entry` is
// place position % block_size of block table[entry][position / block_size].
struct TokenMap {
  std::int64_t block_size = 1;
  std::int64_t width = 0;           // Blocks in each row of the table.
  std::vector<std::int32_t> table;  // [entries, width]

  std::int64_t block(std::int64_t entry, std::int64_t position) const {
    return table[static_cast<std::size_t>(entry * width +
                                          position / block_size)];
  }
};

template <typename Byte>
struct BasicTensorView {
  Byte* data = nullptr;
  Dtype dtype = Dtype::kFp32;
  Shape4 shape = {0, 0, 0, 0};
  Shape4 strides = {0, 0, 0, 0};

  // nullptr: token `position` of `batch` lies at batch * strides[0] +
  // position * strides[2]. Otherwise strides[0] steps from block to block and
  // strides[2] from token to token within one. Not owned.
  const TokenMap* tokens = nullptr;

  std::int64_t offset(std::int64_t batch, std::int64_t head,
                      std::int64_t position, std::int64_t channel = 0) const {
    const std::int64_t within = head * strides[1] + channel * strides[3];
    if (tokens == nullptr)
      return batch * strides[0] + position * strides[2] + within;
    return tokens->block(batch, position) * strides[0] +
           position % tokens->block_size * strides[2] + within;
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
    return {data, dtype, shape, strides, tokens};
  }
};

using TensorView = BasicTensorView<std::byte>;
using ConstTensorView = BasicTensorView<const std::byte>;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_TENSOR_VIEW_H_
