// A kernel that takes DLPack tensors, as an engine.
#include <array>
#include <utility>

#include "adapters/dlpack/dlpack.h"
#include "adapters/dlpack/types.h"

namespace attnguard::dlpack {
namespace {

// A DLTensor that lies on the stack, with its shape and strides.
class Borrowed {
 public:
  Borrowed(const ConstTensorView& view, Layout layout) {
    const std::array<std::size_t, 4> axes = view_axes(layout);
    for (std::size_t axis = 0; axis < 4; ++axis) {
      shape_[axis] = view.shape[axes[axis]];
      strides_[axis] = view.strides[axes[axis]];
    }
    tensor.data = const_cast<std::byte*>(view.data);
    tensor.ndim = 4;
    tensor.dtype = data_type(view.dtype);
    tensor.shape = shape_.data();
    tensor.strides = strides_.data();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Tensor tensor;

 private:
  std::array<std::int64_t, 4> shape_ = {}, strides_ = {};
};

// [batch, 1, seq_len_q, seq_len_kv]
ConstTensorView mask_view(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const Shape4 shape = {problem.batch, 1, problem.max_len_q(),
                        problem.max_len_kv()};
  return {call.mask.data, problem.dtype, shape, contiguous_strides(shape)};
}

Status run(const Callback& callback, const AttentionCall& call) {
  const Layout layout = call.problem->layout;
  const Borrowed query(call.query, layout), key(call.key, layout);
  const Borrowed value(call.value, layout);
  Borrowed output(call.output, layout);
  Borrowed mask(mask_view(call), Layout::kBhsd);
  if (call.mask.form != MaskForm::kAdditive) mask.tensor.dtype = {kBool, 8, 1};
  return callback({.problem = call.problem,
                   .query = &query.tensor,
                   .key = &key.tensor,
                   .value = &value.tensor,
                   .output = &output.tensor,
                   .mask = call.mask.data != nullptr ? &mask.tensor : nullptr});
}

}  // namespace

Engine engine(std::string name, Capabilities capabilities, Callback callback) {
  Engine engine;
  engine.name = std::move(name);
  engine.description = "a kernel that takes DLPack tensors";
  engine.capabilities = std::move(capabilities);
  engine.capabilities.unsupported =
      [own = engine.capabilities.unsupported](const Problem& problem) {
        if (problem.packed || problem.block_size > 0)
          return std::string("packed and paged tensors have no strides");
        return own ? own(problem) : std::string();
      };
  engine.run = [callback = std::move(callback)](const AttentionCall& call) {
    return run(callback, call);
  };
  return engine;
}

}  // namespace attnguard::dlpack
