#include "guard/probe/guarded_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr std::byte kGuardByte{0xa5};
constexpr std::size_t kMostFaultsPerTensor = 4;

// Below this many elements waking the other threads costs more than it saves.
constexpr std::int64_t kParallelElements = 1 << 16;

// Sums and sums of sums (as Fletcher's checksum) over four lanes of 8-byte
// words: as fast as memory. Any one changed word changes the hash, and so do
// words that trade places; it is not made for adversaries.
std::uint64_t hash_bytes(const std::byte* data, std::size_t size) {
  std::uint64_t sum[4] = {1, 2, 3, 4};
  std::uint64_t sum_of_sums[4] = {5, 6, 7, 8};
  std::size_t at = 0;
  for (; at + 32 <= size; at += 32) {
    std::uint64_t word[4];
    std::memcpy(word, data + at, 32);
    for (int i = 0; i < 4; ++i) {
      sum[i] += word[i];
      sum_of_sums[i] += sum[i];
    }
  }
  for (; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<std::size_t>(8, size - at));
    sum[0] += word;
    sum_of_sums[0] += sum[0];
  }
  std::uint64_t hash = size;
  for (int i = 0; i < 4; ++i)
    hash = mix_bits(mix_bits(hash ^ sum[i]) ^ sum_of_sums[i]);
  return hash;
}

}  // namespace

GuardedBuffer::~GuardedBuffer() {
  if (device_ != nullptr) memory_->release(device_);
}

bool GuardedBuffer::allocate(Memory& memory, const Problem& problem,
                             TensorRole role) {
  memory_ = &memory;
  role_ = role;
  dtype_ = problem.dtype_of(role);
  shape_ = problem.shape(role);
  strides_ = problem.strides(role);
  tensor_bytes_ =
      static_cast<std::size_t>(problem.extent(role)) * dtype_size(dtype_);
  device_ = static_cast<std::byte*>(memory.allocate(total_bytes()));
  if (device_ == nullptr) return false;
  try {
    if (!memory.host_accessible()) staging_.resize(total_bytes());
    hashes_.resize(static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2]));
  } catch (const std::bad_alloc&) {
    return false;
  }
  write_guards();
  return true;
}

bool GuardedBuffer::has_gaps() const {
  return static_cast<std::size_t>(elements()) * dtype_size(dtype_) !=
         tensor_bytes_;
}

void GuardedBuffer::write_guards() {
  std::memset(host(), static_cast<int>(kGuardByte), kGuardBytes);
  std::memset(host() + kGuardBytes + tensor_bytes_,
              static_cast<int>(kGuardByte), kGuardBytes);
  if (has_gaps())
    std::memset(host() + kGuardBytes, static_cast<int>(kGuardByte),
                tensor_bytes_);
}

std::uint64_t GuardedBuffer::hash_row(const TensorView& view, std::int64_t b,
                                      std::int64_t h, std::int64_t s) const {
  const std::size_t size = dtype_size(dtype_);
  if (strides_[3] == 1)
    return hash_bytes(view.at(b, h, s),
                      static_cast<std::size_t>(shape_[3]) * size);
  std::uint64_t hash = 0;
  for (std::int64_t c = 0; c < shape_[3]; ++c)
    hash = mix_bits(hash ^ hash_bytes(view.at(b, h, s, c), size));
  return hash;
}

void GuardedBuffer::fill_slot(std::int64_t b, std::int64_t h) {
  const TensorView view = host_view();
  std::vector<double> row(static_cast<std::size_t>(shape_[3]));
  for (std::int64_t s = 0; s < shape_[2]; ++s) {
    filler_(b, h, s, row.data());
    view.store_row(b, h, s, 0, shape_[3], row.data());
    hashes_[row_index(b, h, s)] = hash_row(view, b, h, s);
  }
}

void GuardedBuffer::fill(RowFiller filler) {
  if (damaged_) write_guards();
  damaged_ = false;
  filler_ = std::move(filler);
#pragma omp parallel for collapse(2) \
    schedule(static) if (elements() > kParallelElements)
  for (std::int64_t b = 0; b < shape_[0]; ++b)
    for (std::int64_t h = 0; h < shape_[1]; ++h) fill_slot(b, h);
}

void GuardedBuffer::poison() {
  if (damaged_) write_guards();
  damaged_ = false;
  fill_poison(dtype_, host() + kGuardBytes,
              static_cast<std::int64_t>(tensor_bytes_ / dtype_size(dtype_)));
}

Status GuardedBuffer::upload() {
  if (memory_->host_accessible()) return ok_status();
  return memory_->copy_in(device_, host(), total_bytes());
}

Status GuardedBuffer::download() {
  if (memory_->host_accessible()) return ok_status();
  return memory_->copy_out(host(), device_, total_bytes());
}

bool GuardedBuffer::rows_intact() {
  const TensorView view = host_view();
  bool intact = true;
#pragma omp parallel for collapse(2) schedule(static) reduction(&& : intact) \
    if (elements() > kParallelElements)
  for (std::int64_t b = 0; b < shape_[0]; ++b)
    for (std::int64_t h = 0; h < shape_[1]; ++h)
      for (std::int64_t s = 0; s < shape_[2]; ++s)
        intact =
            intact && hash_row(view, b, h, s) == hashes_[row_index(b, h, s)];
  return intact;
}

// `byte` counts from the tensor's start and may be negative.
void GuardedBuffer::add_fault(std::int64_t byte, MemoryFault::Place place,
                              std::size_t first,
                              std::vector<MemoryFault>& faults) const {
  if (faults.size() - first >= kMostFaultsPerTensor) return;
  const auto size = static_cast<std::int64_t>(dtype_size(dtype_));
  const std::int64_t element =
      byte >= 0 ? byte / size : -((-byte + size - 1) / size);
  if (faults.size() > first && faults.back().place == place &&
      faults.back().element == element)
    return;
  faults.push_back({role_, place, element});
}

void GuardedBuffer::find_guard_faults(std::size_t first,
                                      std::vector<MemoryFault>& faults) {
  const std::byte* before = host();
  const std::byte* after = host() + kGuardBytes + tensor_bytes_;
  for (std::size_t i = 0; i < kGuardBytes; ++i)
    if (before[i] != kGuardByte)
      add_fault(
          static_cast<std::int64_t>(i) - static_cast<std::int64_t>(kGuardBytes),
          MemoryFault::Place::kBefore, first, faults);
  for (std::size_t i = 0; i < kGuardBytes; ++i)
    if (after[i] != kGuardByte)
      add_fault(static_cast<std::int64_t>(tensor_bytes_ + i),
                MemoryFault::Place::kAfter, first, faults);
}

void GuardedBuffer::find_gap_faults(std::size_t first,
                                    std::vector<MemoryFault>& faults) {
  const std::size_t size = dtype_size(dtype_);
  std::vector<bool> owned(tensor_bytes_ / size, false);
  const TensorView view = host_view();
  for (std::int64_t b = 0; b < shape_[0]; ++b)
    for (std::int64_t h = 0; h < shape_[1]; ++h)
      for (std::int64_t s = 0; s < shape_[2]; ++s)
        for (std::int64_t c = 0; c < shape_[3]; ++c)
          owned[static_cast<std::size_t>(view.offset(b, h, s, c))] = true;
  const std::vector<std::byte> guard(size, kGuardByte);
  const bool output = role_ == TensorRole::kOutput;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (owned[i]) continue;
    const std::byte* at = view.data + i * size;
    if (output ? is_poison(dtype_, at)
               : std::memcmp(at, guard.data(), size) == 0)
      continue;
    add_fault(static_cast<std::int64_t>(i * size), MemoryFault::Place::kGap,
              first, faults);
  }
}

void GuardedBuffer::find_input_faults(std::size_t first,
                                      std::vector<MemoryFault>& faults) {
  const TensorView view = host_view();
  const auto channels = static_cast<std::size_t>(shape_[3]);
  const std::size_t size = dtype_size(dtype_);
  std::vector<double> row(channels);
  std::vector<std::byte> expected(channels * size);
  for (std::int64_t b = 0; b < shape_[0]; ++b)
    for (std::int64_t h = 0; h < shape_[1]; ++h)
      for (std::int64_t s = 0; s < shape_[2]; ++s) {
        if (hash_row(view, b, h, s) == hashes_[row_index(b, h, s)]) continue;
        filler_(b, h, s, row.data());
        encode(dtype_, row.data(), shape_[3], expected.data(), 1);
        for (std::int64_t c = 0; c < shape_[3]; ++c)
          if (std::memcmp(view.at(b, h, s, c),
                          expected.data() + static_cast<std::size_t>(c) * size,
                          size) != 0)
            add_fault(view.offset(b, h, s, c) * static_cast<std::int64_t>(size),
                      MemoryFault::Place::kInput, first, faults);
      }
}

void GuardedBuffer::find_faults(std::vector<MemoryFault>& faults) {
  const std::size_t first = faults.size();
  find_guard_faults(first, faults);
  if (has_gaps()) find_gap_faults(first, faults);
  if (role_ != TensorRole::kOutput && !rows_intact())
    find_input_faults(first, faults);
  damaged_ = faults.size() > first;
}

}  // namespace attnguard
