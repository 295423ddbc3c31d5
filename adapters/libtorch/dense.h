// Tensors as LibTorch takes them: any strides, but no packed or paged tokens.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_DENSE_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_DENSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adapters/libtorch/kernel.h"
#include "guard/engine/engine.h"

namespace attnguard::libtorch {

Element element_of(Dtype dtype);

// [shape] without gaps.
Tensor dense_tensor(const void* data, Element element, const Shape4& shape);

// The tensor in place where it is padded. Packed and paged tokens are copied
// to `copy`, `longest` positions for each entry, zero past an entry's length.
Tensor padded(const ConstTensorView& from, const Problem& problem,
              TensorRole role, std::vector<std::byte>& copy);

// Copies every query's row, `channels` elements of the problem's dtype, from a
// dense [batch, heads, max seq_len_q, channels]; converts to the view's dtype.
void scatter(const std::vector<std::byte>& from, const Problem& problem,
             std::int64_t channels, const TensorView& to);

// [batch, max seq_len_q, max seq_len_kv]: 1 where a key is allowed. Rows of
// padding may see everything.
std::vector<std::byte> boolean_mask(const AttentionCall& call);

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_DENSE_H_
