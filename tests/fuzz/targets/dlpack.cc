// A DLPack tensor from a stranger: what is viewed lies where the tensor says
// that its elements lie, and what cannot be viewed is refused.
#include "adapters/dlpack/dlpack.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fuzz/target.h"

using namespace attnguard;
using fuzz::Bytes;
using fuzz::require;

namespace {

constexpr std::int64_t kMost = 1 << 16;  // bytes of a tensor that is read

// First and last byte that the tensor's elements cover, from data on; nothing
// when that overflows or is larger than is worth allocating.
std::optional<std::pair<std::int64_t, std::int64_t>> extent(
    const dlpack::Tensor& tensor) {
  __extension__ using Wide = __int128;
  const Wide width = (tensor.dtype.bits * tensor.dtype.lanes + 7) / 8;
  Wide low = 0, high = 0, compact = 1;
  for (std::int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    const Wide size = tensor.shape[axis];
    if (size < 0 || size > kMost) return {};
    if (size == 0) return {{0, 0}};
    const Wide stride = tensor.strides ? tensor.strides[axis] : compact;
    const Wide reach = (size - 1) * stride;
    (reach < 0 ? low : high) += reach;
    compact *= size;
    if (compact > kMost || high > kMost || low < -kMost) return {};
  }
  low *= width;
  high = (high + 1) * width;
  if (tensor.byte_offset > kMost || high - low > kMost) return {};
  const auto offset = static_cast<std::int64_t>(tensor.byte_offset);
  return {{static_cast<std::int64_t>(low) + offset,
           static_cast<std::int64_t>(high) + offset}};
}

struct Free {
  void operator()(void* data) const { std::free(data); }
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  dlpack::Tensor tensor;
  tensor.ndim = static_cast<std::int32_t>(bytes.below(7)) - 1;
  const bool has_shape = bytes.below(16) != 0, has_strides = bytes.flag();
  const bool wild = bytes.below(8) == 0;
  tensor.dtype.code = bytes.take<std::uint8_t>() % 16;
  tensor.dtype.bits = bytes.take<std::uint8_t>();
  tensor.dtype.lanes = wild ? bytes.take<std::uint16_t>() : 1;
  tensor.device.device_type = wild ? bytes.take<std::int32_t>() : 1;
  std::vector<std::int64_t> shape, strides;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) {
    shape.push_back(wild ? bytes.take<std::int64_t>()
                         : bytes.take<std::uint8_t>() % 12);
    strides.push_back(wild ? bytes.take<std::int64_t>()
                           : bytes.take<std::int8_t>());
  }
  tensor.shape = has_shape && !shape.empty() ? shape.data() : nullptr;
  tensor.strides = has_strides && !strides.empty() ? strides.data() : nullptr;
  tensor.byte_offset =
      wild ? bytes.take<std::uint64_t>() : bytes.take<std::uint8_t>();
  const auto layout = static_cast<Layout>(bytes.below(3));
  const std::string line = bytes.text(200);

  // The memory that the tensor says it has, and not a byte more behind it.
  std::unique_ptr<void, Free> memory;
  bool readable = tensor.ndim <= 0 || tensor.shape == nullptr;
  if (!readable)
    if (const auto lies = extent(tensor)) {
      // In front of data the alignment may leave a gap.
      const std::int64_t before = lies->first < 0 ? -lies->first : 0;
      const std::int64_t gap = (before + 63) / 64 * 64;
      const std::int64_t after = lies->second > 0 ? lies->second : 0;
      memory.reset(std::calloc(1, static_cast<std::size_t>(gap + after + 1)));
      tensor.data = static_cast<std::byte*>(memory.get()) + gap;
      readable = true;
    }
  static std::byte somewhere[64];
  if (tensor.data == nullptr && bytes.flag()) tensor.data = somewhere;

  const Result<ConstTensorView> view = dlpack::view(tensor, layout);
  if (!view.ok())
    require(!view.status().message().empty(), "an error without a message");
  require(dlpack::mutable_view(tensor, layout).ok() == view.ok(),
          "a tensor may be written that cannot be read");
  if (!readable || memory == nullptr) return 0;

  const Result<std::vector<double>> numbers = dlpack::read(tensor, layout);
  if (numbers.ok()) {
    std::size_t count = 1;
    for (const std::int64_t length : shape)
      count *= static_cast<std::size_t>(length);
    require(numbers.value().size() == count, "elements are missing");
  }
  if (const Result<Problem> problem = Problem::parse(line); problem.ok())
    static_cast<void>(dlpack::mask(tensor, problem.value()));
  return 0;
}
