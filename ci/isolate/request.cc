#include "ci/isolate/request.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace attnguard {
namespace {

// As around tensors.
constexpr std::size_t kMargin = 4096;

// By SharedArrays::Which.
constexpr std::string_view kArrayNames[] = {"cu_seqlens_q", "cu_seqlens_kv",
                                            "block_table"};
static_assert(std::size(kArrayNames) == SharedArrays::kCount);

}  // namespace

SharedArrays::~SharedArrays() {
  for (const Array& array : arrays_)
    if (array.block != nullptr) memory_.release(array.block);
}

Result<const std::int32_t*> SharedArrays::share(Which which,
                                                const std::int32_t* array,
                                                std::int64_t count) {
  Array& shared = arrays_[which];
  shared.original = array;
  if (array == nullptr) return nullptr;
  const std::size_t bytes =
      static_cast<std::size_t>(count) * sizeof(std::int32_t);
  if (shared.block == nullptr || shared.bytes != bytes) {
    if (shared.block != nullptr) memory_.release(shared.block);
    shared.block = nullptr;
    shared.copy = nullptr;
    const Result<void*> block =
        allocate_tensor(memory_, kArrayNames[which], bytes, kMargin);
    if (!block.ok()) return block.status();
    shared.bytes = bytes;
    shared.block = block.value();
    shared.copy = reinterpret_cast<std::int32_t*>(
        static_cast<std::byte*>(shared.block) + kMargin);
  }
  std::memcpy(shared.copy, array, bytes);
  return shared.copy;
}

void SharedArrays::take_back() {
  for (const Array& array : arrays_)
    if (array.original != nullptr && array.block != nullptr &&
        std::memcmp(array.original, array.copy, array.bytes) != 0)
      std::memcpy(const_cast<std::int32_t*>(array.original), array.copy,
                  array.bytes);
}

const void* SharedArrays::original_of(const void* address) const {
  for (const Array& array : arrays_)
    if (array.original != nullptr && array.copy == address)
      return array.original;
  return address;
}

std::int64_t RequestBuilder::place(std::string_view name, const void* data) {
  if (data == nullptr) return -1;
  const SharedBlock* block = memory_.find(data);
  if (block == nullptr) {
    status_ = invalid_argument(
        "the " + std::string(name) +
        " tensor does not lie in the memory of the engine; allocate it with "
        "Engine::memory");
    return -1;
  }
  const bool is_known = std::any_of(
      ranges_.begin(), ranges_.end(),
      [&](const SharedBlock& range) { return range.begin == block->begin; });
  if (!is_known) ranges_.push_back(*block);
  return memory_.offset_of(data);
}

SharedView RequestBuilder::share(std::string_view name,
                                 const ConstTensorView& view) {
  return {place(name, view.data), view.dtype, view.shape, view.strides,
          view.tokens != nullptr};
}

std::int64_t RequestBuilder::share(SharedArrays::Which which,
                                   const std::int32_t* array,
                                   std::int64_t count) {
  const Result<const std::int32_t*> copy = arrays_.share(which, array, count);
  if (!copy.ok()) {
    status_ = copy.status();
    return -1;
  }
  return place("index", copy.value());
}

Result<Request> RequestBuilder::finished() {
  if (!status_.ok()) return status_;
  request_.ranges = ranges_;
  return std::move(request_);
}

Result<Request> RequestBuilder::build(const AttentionCall& call) {
  request_.ask = Ask::kRun;
  request_.query = share("query", call.query);
  request_.key = share("key", call.key);
  request_.value = share("value", call.value);
  request_.output = share("output", call.output);
  request_.softmax_lse = share("softmax_lse", call.softmax_lse);
  request_.weights = share("weights", call.weights);
  request_.mask_form = call.mask.form;
  request_.mask = place("mask", call.mask.data);
  const std::int64_t batch = call.problem->batch;
  request_.cu_seqlens_q =
      share(SharedArrays::kCuSeqlensQ, call.cu_seqlens_q, batch + 1);
  request_.cu_seqlens_kv =
      share(SharedArrays::kCuSeqlensKv, call.cu_seqlens_kv, batch + 1);
  request_.block_table = share(SharedArrays::kBlockTable, call.block_table,
                               batch * call.block_table_width);
  request_.block_table_width = call.block_table_width;
  return finished();
}

Result<Request> RequestBuilder::build(const CacheAppend& append) {
  request_.ask = Ask::kAppend;
  request_.num_new = append.num_new;
  request_.new_key = share("new_key", append.new_key);
  request_.new_value = share("new_value", append.new_value);
  request_.key = share("key", append.key);
  request_.value = share("value", append.value);
  const std::int64_t batch = append.problem->batch;
  share(SharedArrays::kCuSeqlensQ, nullptr, 0);
  request_.cu_seqlens_kv =
      share(SharedArrays::kCuSeqlensKv, append.cu_seqlens_kv, batch + 1);
  request_.block_table = share(SharedArrays::kBlockTable, append.block_table,
                               batch * append.block_table_width);
  request_.block_table_width = append.block_table_width;
  return finished();
}

void RequestBuilder::take_accesses() const {
  const ControlBlock& control = memory_.control();
  const std::uint32_t count =
      std::min(control.num_accesses.load(), ControlBlock::kMostAccesses);
  // One for each side of each tensor and kind, the first.
  std::vector<StrayAccess> known;
  for (std::uint32_t i = 0; i < count; ++i) {
    const AccessRecord& record = control.accesses[i];
    // The other process may have written anything.
    if (record.complete.load(std::memory_order_acquire) == 0 ||
        record.range < 0 ||
        static_cast<std::size_t>(record.range) >= ranges_.size() ||
        record.kind < 0 ||
        record.kind > static_cast<int>(StrayAccess::Kind::kUnknown))
      continue;
    const SharedBlock& block = ranges_[static_cast<std::size_t>(record.range)];
    StrayAccess access{.kind = static_cast<StrayAccess::Kind>(record.kind),
                       .tensor = arrays_.original_of(memory_.at(block.tensor)),
                       .byte = record.byte};
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&](const StrayAccess& other) {
          return other.tensor == access.tensor && other.kind == access.kind &&
                 (other.byte < 0) == (access.byte < 0);
        });
    if (is_known) continue;
    known.push_back(access);
    memory_.note(access);
  }
}

}  // namespace attnguard
