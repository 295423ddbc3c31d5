#include "adapters/libtorch/dense.h"

#include <algorithm>
#include <cstring>

#include "guard/engine/mask_tensor.h"

namespace attnguard::libtorch {

Element element_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64:
      return Element::kFp64;
    case Dtype::kFp32:
      return Element::kFp32;
    case Dtype::kFp16:
      return Element::kFp16;
    case Dtype::kBf16:
      return Element::kBf16;
  }
  return Element::kFp32;
}

namespace {

Tensor tensor_at(const void* data, Element element, const Shape4& shape,
                 const Shape4& strides) {
  Tensor tensor{data, element, {}, {}};
  std::copy(shape.begin(), shape.end(), tensor.shape);
  std::copy(strides.begin(), strides.end(), tensor.strides);
  return tensor;
}

std::size_t elements(const Shape4& shape) {
  return static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
}

}  // namespace

Tensor dense_tensor(const void* data, Element element, const Shape4& shape) {
  return tensor_at(data, element, shape, contiguous_strides(shape));
}

Tensor padded(const ConstTensorView& from, const Problem& problem,
              TensorRole role, std::vector<std::byte>& copy) {
  if (from.tokens == nullptr)
    return tensor_at(from.data, element_of(from.dtype), from.shape,
                     from.strides);
  const bool query = role == TensorRole::kQuery;
  const Shape4 shape = {problem.batch, from.shape[1],
                        query ? problem.max_len_q() : problem.max_len_kv(),
                        from.shape[3]};
  const std::size_t size = dtype_size(from.dtype);
  copy.assign(elements(shape) * size, std::byte{0});
  const TensorView to = {copy.data(), from.dtype, shape,
                         contiguous_strides(shape)};
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t i = 0;
           i < (query ? problem.len_q(b) : problem.len_kv(b)); ++i)
        for (std::int64_t c = 0; c < shape[3]; ++c)
          std::memcpy(to.at(b, h, i, c), from.at(b, h, i, c), size);
  return dense_tensor(copy.data(), element_of(from.dtype), shape);
}

void scatter(const std::vector<std::byte>& from, const Problem& problem,
             std::int64_t channels, const TensorView& to) {
  const std::int64_t queries = problem.max_len_q();
  const std::size_t size = dtype_size(problem.dtype);
  std::vector<double> row(static_cast<std::size_t>(channels));
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        const std::int64_t first =
            ((b * problem.num_heads + h) * queries + i) * channels;
        const std::byte* at =
            from.data() + static_cast<std::size_t>(first) * size;
        if (to.dtype != problem.dtype) {
          decode(problem.dtype, at, 1, channels, row.data());
          to.store_row(b, h, i, 0, channels, row.data());
          continue;
        }
        // Bit for bit: what was not written must still be told.
        for (std::int64_t c = 0; c < channels; ++c)
          std::memcpy(to.at(b, h, i, c),
                      at + static_cast<std::size_t>(c) * size, size);
      }
}

std::vector<std::byte> boolean_mask(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const std::int64_t queries = problem.max_len_q();
  const std::int64_t keys = problem.max_len_kv();
  std::vector<std::byte> mask(
      static_cast<std::size_t>(problem.batch * queries * keys), std::byte{0});
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < queries; ++i) {
      allowed.clear();
      if (i < problem.len_q(b))
        allowed_keys(call, problem.row(b, i), allowed);
      else
        allowed.append(0, keys);
      const auto row = mask.begin() + (b * queries + i) * keys;
      for (const KeyRange& range : allowed.ranges())
        std::fill(row + range.begin, row + range.end, std::byte{1});
    }
  return mask;
}

}  // namespace attnguard::libtorch
