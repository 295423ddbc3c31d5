#include "adapters/plain/repack.h"

#include <cstring>

namespace attnguard {
namespace {

// Copies the first length(b) positions of each batch entry.
template <typename Length>
void copy_elements(const ConstTensorView& from, const TensorView& to,
                   Length&& length) {
  const std::size_t size = dtype_size(from.dtype);
  const bool contiguous = from.strides[3] == 1 && to.strides[3] == 1;
  for (std::int64_t b = 0; b < from.shape[0]; ++b)
    for (std::int64_t h = 0; h < from.shape[1]; ++h)
      for (std::int64_t s = 0; s < length(b); ++s) {
        if (contiguous) {
          std::memcpy(to.at(b, h, s), from.at(b, h, s),
                      size * static_cast<std::size_t>(from.shape[3]));
          continue;
        }
        for (std::int64_t c = 0; c < from.shape[3]; ++c)
          std::memcpy(to.at(b, h, s, c), from.at(b, h, s, c), size);
      }
}

}  // namespace

Shape4 layout_strides(const Problem& problem, TensorRole role, Layout layout) {
  Problem dense = problem;
  dense.layout = layout;
  dense.query_strides = dense.key_strides = dense.value_strides =
      dense.output_strides = std::nullopt;
  return dense.strides(role);
}

bool has_layout(const Problem& problem, TensorRole role, Layout layout) {
  const Shape4 shape = problem.shape(role);
  const Shape4 wanted = layout_strides(problem, role, layout);
  const Shape4 given = problem.strides(role);
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (shape[axis] > 1 && given[axis] != wanted[axis]) return false;
  return true;
}

RepackedCall::RepackedCall(const AttentionCall& call, Layout layout)
    : original_(call), packed_(call) {
  const auto copy = [&](TensorRole role, const ConstTensorView& from) {
    std::vector<std::byte>& buffer = buffers_[static_cast<std::size_t>(role)];
    std::size_t size = dtype_size(from.dtype);
    for (std::int64_t count : from.shape)
      size *= static_cast<std::size_t>(count);
    buffer.resize(size);
    const TensorView to = {buffer.data(), from.dtype, from.shape,
                           layout_strides(*call.problem, role, layout)};
    copy_elements(from, to, [&](std::int64_t) { return from.shape[2]; });
    return to;
  };
  packed_.query = copy(TensorRole::kQuery, call.query);
  packed_.key = copy(TensorRole::kKey, call.key);
  packed_.value = copy(TensorRole::kValue, call.value);
  packed_.output = copy(TensorRole::kOutput, call.output);
}

void RepackedCall::copy_output_back() const {
  copy_elements(packed_.output, original_.output,
                [&](std::int64_t b) { return original_.problem->len_q(b); });
}

}  // namespace attnguard
