#include "guard/probe/guarded_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

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

Status GuardedBuffer::allocate(Memory& memory, std::string_view name,
                               Dtype dtype, Placement placement) {
  memory_ = &memory;
  name_ = name;
  dtype_ = dtype;
  placement_ = std::move(placement);
  tensor_bytes_ =
      static_cast<std::size_t>(placement_.extent) * dtype_size(dtype_);
  const Result<void*> data =
      allocate_tensor(memory, name, tensor_bytes_, kGuardBytes);
  if (!data.ok()) return data.status();
  device_ = static_cast<std::byte*>(data.value());
  try {
    if (!memory.host_accessible()) staging_.resize(total_bytes());
    std::int64_t rows = 0;
    for (std::int64_t slots : placement_.slots) {
      first_row_.push_back(rows);
      rows += heads() * slots;
    }
    hashes_.resize(static_cast<std::size_t>(rows));
  } catch (const std::bad_alloc&) {
    return {StatusCode::kOutOfMemory,
            "no host memory to check the " + std::string(name) + " tensor (" +
                std::to_string(tensor_bytes_) +
                " bytes) with; a smaller problem needs less"};
  }
  write_guards();
  return ok_status();
}

std::int64_t GuardedBuffer::elements() const {
  std::int64_t slots = 0;
  for (std::int64_t count : placement_.slots) slots += count;
  return slots * heads() * channels();
}

// Shared blocks are counted more than once and so never look like gaps; they
// have none.
bool GuardedBuffer::has_gaps() const {
  return static_cast<std::size_t>(elements()) * dtype_size(dtype_) <
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
  if (placement_.strides[3] == 1)
    return hash_bytes(view.at(b, h, s),
                      static_cast<std::size_t>(channels()) * size);
  std::uint64_t hash = 0;
  for (std::int64_t c = 0; c < channels(); ++c)
    hash = mix_bits(hash ^ hash_bytes(view.at(b, h, s, c), size));
  return hash;
}

void GuardedBuffer::fill_slot(std::int64_t b, std::int64_t h) {
  const TensorView view = host_view();
  std::vector<double> row(static_cast<std::size_t>(channels()));
  const std::int64_t slots = placement_.slots[static_cast<std::size_t>(b)];
  for (std::int64_t s = 0; s < slots; ++s) {
    filler_(b, h, s, row.data());
    view.store_row(b, h, s, 0, channels(), row.data());
    hashes_[row_index(b, h, s)] = hash_row(view, b, h, s);
  }
}

void GuardedBuffer::fill(RowFiller filler) {
  if (damaged_) write_guards();
  damaged_ = false;
  is_input_ = true;
  filler_ = std::move(filler);
  const std::int64_t entries = placement_.entries();
  const std::int64_t num_heads = heads();
#pragma omp parallel for collapse(2) \
    schedule(static) if (elements() > kParallelElements)
  for (std::int64_t b = 0; b < entries; ++b)
    for (std::int64_t h = 0; h < num_heads; ++h) fill_slot(b, h);
}

void GuardedBuffer::withhold(const RowFiller& other,
                             const std::vector<std::int64_t>& lengths,
                             std::int64_t count) {
  const TensorView view = host_view();
  std::vector<double> row(static_cast<std::size_t>(channels()));
  for (std::size_t b = 0; b < lengths.size(); ++b)
    for (std::int64_t h = 0; h < heads(); ++h)
      for (std::int64_t s = lengths[b] - count; s < lengths[b]; ++s) {
        const auto entry = static_cast<std::int64_t>(b);
        other(entry, h, s, row.data());
        view.store_row(entry, h, s, 0, channels(), row.data());
      }
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
  const std::int64_t entries = placement_.entries();
  const std::int64_t num_heads = heads();
#pragma omp parallel for collapse(2) schedule(static) reduction(&& : intact) \
    if (elements() > kParallelElements)
  for (std::int64_t b = 0; b < entries; ++b)
    for (std::int64_t h = 0; h < num_heads; ++h)
      for (std::int64_t s = 0;
           s < placement_.slots[static_cast<std::size_t>(b)]; ++s)
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
  faults.push_back({.tensor = name_, .place = place, .element = element});
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
  for_each_slot([&](std::int64_t b, std::int64_t h, std::int64_t s) {
    for (std::int64_t c = 0; c < channels(); ++c)
      owned[static_cast<std::size_t>(view.offset(b, h, s, c))] = true;
  });
  const std::vector<std::byte> guard(size, kGuardByte);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (owned[i]) continue;
    const std::byte* at = view.data + i * size;
    if (is_input_ ? std::memcmp(at, guard.data(), size) == 0
                  : is_poison(dtype_, at))
      continue;
    add_fault(static_cast<std::int64_t>(i * size), MemoryFault::Place::kGap,
              first, faults);
  }
}

void GuardedBuffer::find_input_faults(std::size_t first,
                                      std::vector<MemoryFault>& faults) {
  const TensorView view = host_view();
  const auto count = static_cast<std::size_t>(channels());
  const std::size_t size = dtype_size(dtype_);
  std::vector<double> row(count);
  std::vector<std::byte> expected(count * size);
  for_each_slot([&](std::int64_t b, std::int64_t h, std::int64_t s) {
    if (hash_row(view, b, h, s) == hashes_[row_index(b, h, s)]) return;
    filler_(b, h, s, row.data());
    encode(dtype_, row.data(), channels(), expected.data(), 1);
    for (std::int64_t c = 0; c < channels(); ++c) {
      if (std::memcmp(view.at(b, h, s, c),
                      expected.data() + static_cast<std::size_t>(c) * size,
                      size) == 0)
        continue;
      const std::size_t before = faults.size();
      add_fault(view.offset(b, h, s, c) * static_cast<std::int64_t>(size),
                MemoryFault::Place::kInput, first, faults);
      if (faults.size() == before) continue;
      faults.back().entry = b;
      faults.back().head = h;
      faults.back().position = s;
    }
  });
}

void GuardedBuffer::find_faults(std::vector<MemoryFault>& faults) {
  const std::size_t first = faults.size();
  find_guard_faults(first, faults);
  if (has_gaps()) find_gap_faults(first, faults);
  if (is_input_ && !rows_intact()) find_input_faults(first, faults);
  damaged_ = faults.size() > first;
}

}  // namespace attnguard
