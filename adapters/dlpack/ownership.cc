// Who calls a deleter, and when.
#include <array>
#include <utility>

#include "adapters/dlpack/dlpack.h"
#include "adapters/dlpack/types.h"

namespace attnguard::dlpack {
namespace {

constexpr std::uint32_t kMajor = 1;  // The layout that is understood.

// What an exported tensor needs until its deleter is called.
template <typename Managed>
struct Exported {
  Managed managed;
  std::array<std::int64_t, 4> shape = {}, strides = {};
  std::shared_ptr<const void> owner;

  static void release(Managed* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  }
};

template <typename Managed>
Managed* make_exported(const ConstTensorView& view, Layout layout,
                       std::shared_ptr<const void> owner) {
  // A token map has no strides.
  if (view.tokens != nullptr) return nullptr;
  auto exported = std::make_unique<Exported<Managed>>();
  const std::array<std::size_t, 4> axes = view_axes(layout);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    exported->shape[axis] = view.shape[axes[axis]];
    exported->strides[axis] = view.strides[axes[axis]];
  }
  exported->owner = std::move(owner);
  Managed& managed = exported->managed;
  managed.dl_tensor.data = const_cast<std::byte*>(view.data);
  managed.dl_tensor.ndim = 4;
  managed.dl_tensor.dtype = data_type(view.dtype);
  managed.dl_tensor.shape = exported->shape.data();
  managed.dl_tensor.strides = exported->strides.data();
  managed.deleter = Exported<Managed>::release;
  managed.manager_ctx = exported.get();
  return &exported.release()->managed;
}

template <typename Managed>
std::shared_ptr<const void> keep(Managed* managed) {
  return {managed, [](Managed* held) {
            if (held->deleter != nullptr) held->deleter(held);
          }};
}

}  // namespace

Result<Owned> Owned::take(ManagedTensor* managed) {
  if (managed == nullptr)
    return invalid_argument("DLPack tensor: the DLManagedTensor is NULL");
  return Owned(keep(managed), &managed->dl_tensor, false);
}

Result<Owned> Owned::take(ManagedTensorVersioned* managed) {
  if (managed == nullptr)
    return invalid_argument(
        "DLPack tensor: the DLManagedTensorVersioned is NULL");
  std::shared_ptr<const void> keeper = keep(managed);
  if (managed->version.major != kMajor)
    return invalid_argument(
        "DLPack tensor: version " + std::to_string(managed->version.major) +
        "." + std::to_string(managed->version.minor) +
        " has another layout than 1.x, which is the one understood");
  return Owned(std::move(keeper), &managed->dl_tensor,
               (managed->flags & kReadOnly) != 0);
}

ManagedTensorVersioned* export_tensor(const ConstTensorView& view,
                                      Layout layout,
                                      std::shared_ptr<const void> owner) {
  auto* managed =
      make_exported<ManagedTensorVersioned>(view, layout, std::move(owner));
  if (managed != nullptr) managed->flags = kReadOnly;
  return managed;
}

ManagedTensor* export_unversioned(const ConstTensorView& view, Layout layout,
                                  std::shared_ptr<const void> owner) {
  return make_exported<ManagedTensor>(view, layout, std::move(owner));
}

}  // namespace attnguard::dlpack
