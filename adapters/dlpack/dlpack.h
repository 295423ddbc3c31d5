// Arrays that come and go by DLPack, the exchange format of PyTorch, NumPy,
// JAX, CuPy, TVM and others.
//
// The structs are DLPack's ABI under names of this project's own, so that they
// meet no other copy of dlpack.h: cast a DLManagedTensor* of yours to
// ManagedTensor*. The older struct and the versioned one of DLPack 1.x are both
// understood.
//
//   attnguard::Result<attnguard::dlpack::Owned> query =
//       attnguard::dlpack::Owned::take(managed);      // its deleter runs once
//   attnguard::Result<attnguard::ConstTensorView> view =
//       attnguard::dlpack::view(query.value().tensor(), Layout::kBhsd);
//
// or the other way, a kernel that takes DLPack tensors as an engine:
//
//   Engine engine = attnguard::dlpack::engine("mine", capabilities, callback);
#ifndef ATTNGUARD_ADAPTERS_DLPACK_DLPACK_H_
#define ATTNGUARD_ADAPTERS_DLPACK_DLPACK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "guard/engine/engine.h"

namespace attnguard::dlpack {

// DLDevice.
struct Device {
  std::int32_t device_type = 1;  // kDLCPU
  std::int32_t device_id = 0;
};

// DLDataType.
struct DataType {
  std::uint8_t code = 2;  // kDLFloat
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

// DLTensor. strides count elements; nullptr: compact, last axis fastest. The
// first element lies byte_offset bytes behind data.
struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t ndim = 0;
  DataType dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

// DLManagedTensor.
struct ManagedTensor {
  Tensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(ManagedTensor* self) = nullptr;
};

// DLPackVersion.
struct Version {
  std::uint32_t major = 1;
  std::uint32_t minor = 0;
};

// DLManagedTensorVersioned.
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx = nullptr;
  void (*deleter)(ManagedTensorVersioned* self) = nullptr;
  std::uint64_t flags = 0;
  Tensor dl_tensor;
};

inline constexpr std::uint64_t kReadOnly = 1;  // DLPACK_FLAG_BITMASK_READ_ONLY

// Codes of DataType.
inline constexpr std::uint8_t kFloat = 2;
inline constexpr std::uint8_t kBfloat = 4;
inline constexpr std::uint8_t kBool = 6;
inline constexpr std::uint8_t kFloat8E4m3fn = 10;
inline constexpr std::uint8_t kFloat8E5m2 = 12;

// A managed tensor whose deleter is called exactly once: at the end, or when
// it cannot be taken.
class Owned {
 public:
  // kInvalidArgument: nullptr, or a major version that is not understood (its
  // layout is unknown then; only its deleter is used, as DLPack says).
  static Result<Owned> take(ManagedTensor* managed);
  static Result<Owned> take(ManagedTensorVersioned* managed);

  const Tensor& tensor() const { return *tensor_; }
  bool read_only() const { return read_only_; }

 private:
  Owned(std::shared_ptr<const void> keeper, const Tensor* tensor,
        bool read_only)
      : keeper_(std::move(keeper)), tensor_(tensor), read_only_(read_only) {}

  std::shared_ptr<const void> keeper_;
  const Tensor* tensor_ = nullptr;
  bool read_only_ = false;
};

// A view of a tensor on the host, nothing copied. Four axes in the order of
// `layout`, or three, [position, head, channel], for one batch entry. fp64,
// fp32, fp16 and bf16. What cannot be viewed is refused with the reason: a
// device that the host cannot read (kUnsupported: give the engine a Memory
// instead), other ndim, lanes or types, negative sizes, data that is not
// aligned to its elements, nullptr where there are elements.
Result<ConstTensorView> view(const Tensor& tensor, Layout layout);

// The same of what may be written.
Result<TensorView> mutable_view(const Tensor& tensor, Layout layout);

// Elements in the order [batch, head, position, channel] as numbers: every
// type that view takes, and those that the guard's tensors do not have: fp8
// (e4m3fn and e5m2) and bool (0 and 1).
Result<std::vector<double>> read(const Tensor& tensor, Layout layout);

// A mask for AttentionCall::mask, nothing copied: [batch, 1, seq_len_q,
// seq_len_kv], the same without the second axis, or for one entry the last two
// alone; compact. Bool is kBoolean, true where a query may attend, unless the
// problem's mask_form is inverted; elements of the problem's dtype are
// kAdditive. What does not fit the problem is refused with the reason.
Result<MaskTensor> mask(const Tensor& tensor, const Problem& problem);

// A tensor for others: its deleter releases `owner`, and the caller must see
// to it that it is called. `layout` says the order of the axes. nullptr
// for tensors that one set of strides cannot describe (packed and paged ones).
ManagedTensorVersioned* export_tensor(const ConstTensorView& view,
                                      Layout layout,
                                      std::shared_ptr<const void> owner);
ManagedTensor* export_unversioned(const ConstTensorView& view, Layout layout,
                                  std::shared_ptr<const void> owner);

// What an engine that takes DLPack gets: tensors whose axes are those of
// problem->layout, valid during the call.
struct Call {
  const Problem* problem = nullptr;
  const Tensor* query = nullptr;
  const Tensor* key = nullptr;
  const Tensor* value = nullptr;
  Tensor* output = nullptr;

  // [batch, 1, seq_len_q, seq_len_kv], bool; nullptr when the mask is implied.
  // Additive masks have the inputs' type.
  const Tensor* mask = nullptr;
};

using Callback = std::function<Status(const Call&)>;

// An engine around such a callback. Packed and paged problems are reported as
// unsupported, since one tensor cannot hold them.
Engine engine(std::string name, Capabilities capabilities, Callback callback);

}  // namespace attnguard::dlpack

#endif  // ATTNGUARD_ADAPTERS_DLPACK_DLPACK_H_
