// Between the guard's tensors, any layout, and ONNX's dense ones.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_TENSORS_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_TENSORS_H_

#include <cstdint>
#include <string>

#include "adapters/onnxruntime/node.h"
#include "guard/engine/engine.h"

namespace attnguard::onnxruntime {

enum class Form {
  kHeads,   // [batch, heads, positions, channels]
  kMerged,  // [batch, positions, heads * channels]
};

int element_type(Dtype dtype);

// Positions first ... first + count - 1 of every entry. Padding comes along
// where it is a part of the tensor; where it is not (packed and paged tensors)
// it is zero. What lies past the tensor's last position is zero too.
NodeTensor gather(const std::string& name, const ConstTensorView& from,
                  const std::vector<std::int64_t>& lengths, std::int64_t first,
                  std::int64_t count, Form form);

// Of a result's shape, filled with the dtype's poison, so that what is not
// written can be told.
NodeTensor result_tensor(const std::string& name, Dtype dtype,
                         std::int64_t batch, std::int64_t heads,
                         std::int64_t positions, std::int64_t channels,
                         Form form);

// Copies the first lengths[b] positions of every entry, `channels` elements
// each. `from` holds elements of to.dtype.
void scatter(const NodeTensor& from, Form form,
             const std::vector<std::int64_t>& lengths, std::int64_t channels,
             const TensorView& to);

// The first output, merged, to call.output.
void finish_merged(const NodeCall& node, const AttentionCall& call);

// seq_len_q and seq_len_kv, one for each entry.
std::vector<std::int64_t> lengths_q(const Problem& problem);
std::vector<std::int64_t> lengths_kv(const Problem& problem);

// [batch, 1, max seq_len_q, max seq_len_kv] from call.mask or the problem's
// mask. Rows of padding may see everything. kAdditive: `masked` where a key is
// not allowed, in the problem's dtype.
NodeTensor boolean_mask(const std::string& name, const AttentionCall& call);
NodeTensor additive_mask(const std::string& name, const AttentionCall& call,
                         double masked);

template <typename Element>
NodeTensor integer_tensor(const std::string& name, int type,
                          const std::vector<Element>& elements,
                          const std::vector<std::int64_t>& dims) {
  NodeTensor tensor{name, type, dims, {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(elements.data());
  tensor.bytes.assign(bytes, bytes + elements.size() * sizeof(Element));
  return tensor;
}

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_TENSORS_H_
