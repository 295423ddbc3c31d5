// Mask tensors from DLPack.
#include <optional>
#include <string>
#include <vector>

#include "adapters/dlpack/dlpack.h"
#include "adapters/dlpack/types.h"

namespace attnguard::dlpack {
namespace {

Status wrong_mask(const std::string& what) {
  return invalid_argument("DLPack mask: " + what);
}

std::string shape_text(const std::int64_t* shape, std::size_t ndim) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < ndim; ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

// What the elements mean; nullopt: they are no mask of this problem.
std::optional<MaskForm> form_of(const DataType& type, const Problem& problem) {
  const MaskForm asked = problem.mask_form;
  if (type.code == kBool && type.bits == 8 && type.lanes == 1) {
    if (asked == MaskForm::kAdditive) return std::nullopt;
    return asked == MaskForm::kInverted ? asked : MaskForm::kBoolean;
  }
  if (dtype_of(type) != problem.dtype || asked == MaskForm::kBoolean ||
      asked == MaskForm::kInverted)
    return std::nullopt;
  return MaskForm::kAdditive;
}

Status check_shape(const Tensor& tensor, const Problem& problem) {
  if (tensor.ndim < 2 || tensor.ndim > 4)
    return wrong_mask("ndim is " + std::to_string(tensor.ndim) +
                      "; 2 to 4 expected");
  if (tensor.shape == nullptr) return wrong_mask("shape is NULL");
  const auto ndim = static_cast<std::size_t>(tensor.ndim);
  std::vector<std::int64_t> expected = {problem.batch, 1, problem.max_len_q(),
                                        problem.max_len_kv()};
  if (ndim < 4) expected.erase(expected.begin() + 1);
  if (ndim < 3) expected.erase(expected.begin());
  if (ndim < 3 && problem.batch != 1)
    return wrong_mask("two axes are for one entry; the problem has " +
                      std::to_string(problem.batch));
  std::int64_t compact = 1;
  for (std::size_t axis = ndim; axis-- > 0;) {
    if (tensor.shape[axis] != expected[axis])
      return wrong_mask("its shape is " + shape_text(tensor.shape, ndim) +
                        " instead of " + shape_text(expected.data(), ndim));
    if (tensor.strides != nullptr && tensor.shape[axis] > 1 &&
        tensor.strides[axis] != compact)
      return wrong_mask("stride " + std::to_string(axis) + " is " +
                        std::to_string(tensor.strides[axis]) + " instead of " +
                        std::to_string(compact) + "; make it contiguous");
    compact *= tensor.shape[axis];
  }
  if (tensor.data == nullptr && compact > 0) return wrong_mask("data is NULL");
  return ok_status();
}

}  // namespace

Result<MaskTensor> mask(const Tensor& tensor, const Problem& problem) {
  if (!on_host(tensor.device))
    return unsupported("DLPack mask: it lies on a device of type " +
                       std::to_string(tensor.device.device_type) +
                       ", which the host cannot read");
  const std::optional<MaskForm> form = form_of(tensor.dtype, problem);
  if (!form)
    return wrong_mask(type_name(tensor.dtype) + "; bool or " +
                      std::string(dtype_name(problem.dtype)) +
                      " is expected, as the problem's mask_form says");
  if (Status status = check_shape(tensor, problem); !status.ok()) return status;
  if (tensor.data == nullptr) return MaskTensor{*form, nullptr};
  const std::byte* data =
      static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const std::size_t size = tensor.dtype.bits / 8u;
  if (reinterpret_cast<std::uintptr_t>(data) % size != 0)
    return wrong_mask("data + byte_offset is not aligned to elements of " +
                      std::to_string(size) + " bytes");
  return MaskTensor{*form, data};
}

}  // namespace attnguard::dlpack
