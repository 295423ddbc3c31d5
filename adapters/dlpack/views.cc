// From DLPack to the guard's views, and elements that those do not hold.
#include <array>
#include <cstddef>
#include <optional>

#include "adapters/dlpack/dlpack.h"
#include "adapters/dlpack/types.h"

namespace attnguard::dlpack {

// The layout that the C structs have on every 64-bit platform.
static_assert(sizeof(Device) == 8 && sizeof(DataType) == 4);
static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, shape) == 24 &&
              offsetof(Tensor, byte_offset) == 40);
static_assert(sizeof(ManagedTensor) == 64 &&
              offsetof(ManagedTensor, deleter) == 56);
static_assert(sizeof(ManagedTensorVersioned) == 80 &&
              offsetof(ManagedTensorVersioned, flags) == 24 &&
              offsetof(ManagedTensorVersioned, dl_tensor) == 32);

namespace {

Status wrong_tensor(const std::string& what) {
  return invalid_argument("DLPack tensor: " + what);
}

// Shape and strides, in elements of whatever type, in a view's axis order.
struct Geometry {
  Shape4 shape = {1, 1, 1, 1};
  Shape4 strides = {0, 0, 0, 0};
  std::byte* data = nullptr;
  bool empty = false;
};

Result<Geometry> geometry_of(const Tensor& tensor, Layout layout) {
  if (!on_host(tensor.device))
    return unsupported(
        "DLPack tensor: it lies on a device of type " +
        std::to_string(tensor.device.device_type) +
        ", which the host cannot read; give the engine a Memory that copies");
  if (tensor.ndim != 4 && tensor.ndim != 3)
    return wrong_tensor("ndim is " + std::to_string(tensor.ndim) +
                        "; 4 axes are expected, or 3: position, head, channel");
  if (tensor.shape == nullptr) return wrong_tensor("shape is NULL");
  if (tensor.dtype.lanes != 1 || tensor.dtype.bits % 8 != 0)
    return wrong_tensor(type_name(tensor.dtype) +
                        "; elements must be whole bytes and one lane");
  std::array<std::int64_t, 4> strides = {0, 0, 0, 0};
  Geometry geometry;
  std::int64_t compact = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    const std::int64_t length = tensor.shape[axis];
    if (length < 0)
      return wrong_tensor("shape[" + std::to_string(axis) + "] is " +
                          std::to_string(length));
    geometry.empty |= length == 0;
    strides[static_cast<std::size_t>(axis)] =
        tensor.strides != nullptr ? tensor.strides[axis] : compact;
    if (length > 0 && __builtin_mul_overflow(compact, length, &compact))
      return wrong_tensor("its shape holds more elements than can be counted");
  }
  const std::array<std::size_t, 4> axes =
      tensor.ndim == 4 ? view_axes(layout)
                       : std::array<std::size_t, 4>{2, 1, 3, 0};
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) {
    const std::size_t to = axes[static_cast<std::size_t>(axis)];
    geometry.shape[to] = tensor.shape[axis];
    geometry.strides[to] = strides[static_cast<std::size_t>(axis)];
  }
  if (tensor.data == nullptr && !geometry.empty)
    return wrong_tensor("data is NULL, and its shape is not empty");
  if (tensor.data != nullptr)
    geometry.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const std::size_t size = tensor.dtype.bits / 8u;
  if (size > 0 && reinterpret_cast<std::uintptr_t>(geometry.data) % size != 0)
    return wrong_tensor("data + byte_offset is not aligned to elements of " +
                        std::to_string(size) + " bytes");
  return geometry;
}

using DecodeByte = double (*)(std::uint8_t);

// How elements of a byte are read that the guard's tensors do not have.
DecodeByte byte_decoder(const DataType& type) {
  if (type.bits != 8 || type.lanes != 1) return nullptr;
  switch (type.code) {
    case kBool:
      return [](std::uint8_t bits) { return bits != 0 ? 1.0 : 0.0; };
    case kFloat8E4m3fn:
      return decode_e4m3fn;
    case kFloat8E5m2:
      return decode_e5m2;
    default:
      return nullptr;
  }
}

}  // namespace

Result<TensorView> mutable_view(const Tensor& tensor, Layout layout) {
  const Result<Geometry> geometry = geometry_of(tensor, layout);
  if (!geometry.ok()) return geometry.status();
  const std::optional<Dtype> dtype = dtype_of(tensor.dtype);
  if (!dtype)
    return wrong_tensor(
        type_name(tensor.dtype) + "; fp64, fp32, fp16 and bf16 can be viewed" +
        (byte_decoder(tensor.dtype) != nullptr ? ", this be read()" : ""));
  return TensorView{geometry.value().data, *dtype, geometry.value().shape,
                    geometry.value().strides};
}

Result<ConstTensorView> view(const Tensor& tensor, Layout layout) {
  const Result<TensorView> found = mutable_view(tensor, layout);
  if (!found.ok()) return found.status();
  return ConstTensorView(found.value());
}

Result<std::vector<double>> read(const Tensor& tensor, Layout layout) {
  const Result<Geometry> found = geometry_of(tensor, layout);
  if (!found.ok()) return found.status();
  const Geometry& geometry = found.value();
  const std::optional<Dtype> dtype = dtype_of(tensor.dtype);
  const DecodeByte decode_byte = byte_decoder(tensor.dtype);
  if (!dtype && decode_byte == nullptr)
    return wrong_tensor(type_name(tensor.dtype) +
                        "; fp64, fp32, fp16, bf16, fp8 and bool can be read");
  std::vector<double> elements;
  if (geometry.empty) return elements;
  const auto& [batch, heads, positions, channels] = geometry.shape;
  const auto size = static_cast<std::int64_t>(tensor.dtype.bits / 8);
  elements.reserve(
      static_cast<std::size_t>(batch * heads * positions * channels));
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < positions; ++i)
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::byte* at =
              geometry.data +
              size * (b * geometry.strides[0] + h * geometry.strides[1] +
                      i * geometry.strides[2] + c * geometry.strides[3]);
          double x = 0;
          if (dtype)
            decode(*dtype, at, 1, 1, &x);
          else
            x = decode_byte(std::to_integer<std::uint8_t>(*at));
          elements.push_back(x);
        }
  return elements;
}

}  // namespace attnguard::dlpack
