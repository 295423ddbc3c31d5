#include "adapters/onnxruntime/tensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "guard/engine/mask_tensor.h"

namespace attnguard::onnxruntime {
namespace {

std::size_t bytes_for(const std::vector<std::int64_t>& dims,
                      std::size_t element) {
  std::size_t bytes = element;
  for (std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
  return bytes;
}

NodeTensor tensor_of(const std::string& name, Dtype dtype, std::int64_t batch,
                     std::int64_t heads, std::int64_t positions,
                     std::int64_t channels, Form form) {
  NodeTensor tensor{name, element_type(dtype), {}, {}};
  if (form == Form::kHeads)
    tensor.dims = {batch, heads, positions, channels};
  else
    tensor.dims = {batch, positions, heads * channels};
  tensor.bytes.resize(bytes_for(tensor.dims, dtype_size(dtype)));
  return tensor;
}

// A view of a dense tensor of either form.
TensorView view_of(std::byte* data, Dtype dtype, const Shape4& shape,
                   Form form) {
  Shape4 strides = contiguous_strides(shape);
  if (form == Form::kMerged)
    strides = {shape[1] * shape[2] * shape[3], shape[3], shape[1] * shape[3],
               1};
  return {data, dtype, shape, strides};
}

void copy_row(const ConstTensorView& from, const TensorView& to, std::int64_t b,
              std::int64_t h, std::int64_t from_position,
              std::int64_t to_position, std::int64_t channels) {
  const std::size_t size = dtype_size(from.dtype);
  for (std::int64_t c = 0; c < channels; ++c)
    std::memcpy(to.at(b, h, to_position, c), from.at(b, h, from_position, c),
                size);
}

template <typename SetRow>
void for_each_mask_row(const AttentionCall& call, SetRow set_row) {
  const Problem& problem = *call.problem;
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.max_len_q(); ++i) {
      if (i < problem.len_q(b)) {
        allowed_keys(call, problem.row(b, i), allowed);
      } else {
        allowed.clear();
        allowed.append(0, problem.max_len_kv());
      }
      set_row((b * problem.max_len_q() + i) * problem.max_len_kv(), allowed);
    }
}

std::vector<std::int64_t> mask_dims(const Problem& problem) {
  return {problem.batch, 1, problem.max_len_q(), problem.max_len_kv()};
}

}  // namespace

int element_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64:
      return 11;
    case Dtype::kFp32:
      return kFloat;
    case Dtype::kFp16:
      return kFloat16;
    case Dtype::kBf16:
      return 16;
  }
  return 0;
}

NodeTensor gather(const std::string& name, const ConstTensorView& from,
                  const std::vector<std::int64_t>& lengths, std::int64_t first,
                  std::int64_t count, Form form) {
  const Shape4 shape = {static_cast<std::int64_t>(lengths.size()),
                        from.shape[1], count, from.shape[3]};
  NodeTensor tensor =
      tensor_of(name, from.dtype, shape[0], shape[1], shape[2], shape[3], form);
  const TensorView to = view_of(tensor.bytes.data(), from.dtype, shape, form);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    // Past its length a packed or paged sequence has no places of its own.
    const std::int64_t last = from.tokens != nullptr
                                  ? lengths[static_cast<std::size_t>(b)]
                                  : from.shape[2];
    const std::int64_t end = std::min(first + count, last);
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t i = first; i < end; ++i)
        copy_row(from, to, b, h, i, i - first, shape[3]);
  }
  return tensor;
}

NodeTensor result_tensor(const std::string& name, Dtype dtype,
                         std::int64_t batch, std::int64_t heads,
                         std::int64_t positions, std::int64_t channels,
                         Form form) {
  NodeTensor tensor =
      tensor_of(name, dtype, batch, heads, positions, channels, form);
  fill_poison(
      dtype, tensor.bytes.data(),
      static_cast<std::int64_t>(tensor.bytes.size() / dtype_size(dtype)));
  return tensor;
}

void scatter(const NodeTensor& from, Form form,
             const std::vector<std::int64_t>& lengths, std::int64_t channels,
             const TensorView& to) {
  const Shape4 shape = {to.shape[0], to.shape[1],
                        form == Form::kHeads ? from.dims[2] : from.dims[1],
                        channels};
  const ConstTensorView view =
      view_of(const_cast<std::byte*>(from.bytes.data()), to.dtype, shape, form);
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(b)]; ++i)
        copy_row(view, to, b, h, i, i, channels);
}

void finish_merged(const NodeCall& node, const AttentionCall& call) {
  scatter(node.outputs.front(), Form::kMerged, lengths_q(*call.problem),
          call.problem->head_dim_v, call.output);
}

std::vector<std::int64_t> lengths_q(const Problem& problem) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    lengths.push_back(problem.len_q(b));
  return lengths;
}

std::vector<std::int64_t> lengths_kv(const Problem& problem) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    lengths.push_back(problem.len_kv(b));
  return lengths;
}

NodeTensor boolean_mask(const std::string& name, const AttentionCall& call) {
  NodeTensor mask{name, kBool, mask_dims(*call.problem), {}};
  mask.bytes.resize(bytes_for(mask.dims, 1), std::byte{0});
  for_each_mask_row(call, [&](std::int64_t row, const KeyRanges& allowed) {
    for (const KeyRange& range : allowed.ranges())
      std::fill(mask.bytes.begin() + row + range.begin,
                mask.bytes.begin() + row + range.end, std::byte{1});
  });
  return mask;
}

NodeTensor additive_mask(const std::string& name, const AttentionCall& call,
                         double masked) {
  const Dtype dtype = call.problem->dtype;
  const std::size_t size = dtype_size(dtype);
  NodeTensor mask{name, element_type(dtype), mask_dims(*call.problem), {}};
  mask.bytes.resize(bytes_for(mask.dims, size));
  const std::int64_t keys = call.problem->max_len_kv();
  for_each_mask_row(call, [&](std::int64_t row, const KeyRanges& allowed) {
    std::vector<double> elements(static_cast<std::size_t>(keys), masked);
    for (const KeyRange& range : allowed.ranges())
      std::fill(elements.begin() + range.begin, elements.begin() + range.end,
                0.0);
    encode(dtype, elements.data(), keys,
           mask.bytes.data() + static_cast<std::size_t>(row) * size, 1);
  });
  return mask;
}

}  // namespace attnguard::onnxruntime
