// One tensor in the engine's memory, with guard bytes on both sides, and the
// means to tell afterwards what the engine changed.
//
// Rows are remembered by a 64-bit hash taken while they are written, not by a
// copy: two passes over memory instead of five. Where a hash differs, the
// pattern that filled the row says which element changed.
#ifndef ATTNGUARD_GUARD_PROBE_GUARDED_BUFFER_H_
#define ATTNGUARD_GUARD_PROBE_GUARDED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "guard/engine/memory.h"
#include "guard/probe/execute.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Fills one row of a tensor: (batch, head, position, channels).
using RowFiller =
    std::function<void(std::int64_t, std::int64_t, std::int64_t, double*)>;

// On both sides of a tensor: a multiple of every alignment that kernels ask
// for, and wide enough for a runaway vector store.
inline constexpr std::size_t kGuardBytes = 4096;
inline constexpr std::byte kGuardByte{0xa5};

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  // The memory's own status and message when it gives none. `memory` must
  // outlive the buffer; `name` is what faults call the tensor.
  Status allocate(Memory& memory, std::string_view name, Dtype dtype,
                  Placement placement);

  bool is_allocated() const { return device_ != nullptr; }
  TensorView host_view() { return view(host()); }
  TensorView device_view() { return view(device_); }
  const Placement& placement() const { return placement_; }
  std::string_view name() const { return name_; }

  // An input: every row of every entry from the pattern, hashes remembered.
  // After damage the guard bytes are renewed too. Entry `batch` of packed and
  // paged tensors is what belongs to nobody.
  void fill(RowFiller filler);

  // Puts other rows where the last `count` tokens of each of `lengths` lie,
  // and still expects those that fill() put there: the engine appends them.
  void withhold(const RowFiller& other,
                const std::vector<std::int64_t>& lengths, std::int64_t count);

  // An output: every element, gaps too, is the poison NaN.
  void poison();

  Status upload();
  Status download();

  // Appends what changed although the engine must not change it: bytes around
  // the tensor, gaps between its rows, and input rows.
  void find_faults(std::vector<MemoryFault>& faults);

 private:
  TensorView view(std::byte* start) const {
    return {start + kGuardBytes, dtype_, placement_.shape, placement_.strides,
            placement_.tokens.get()};
  }
  std::byte* host() {
    return memory_->host_accessible() ? device_ : staging_.data();
  }
  std::size_t total_bytes() const { return tensor_bytes_ + 2 * kGuardBytes; }
  std::int64_t heads() const { return placement_.shape[1]; }
  std::int64_t channels() const { return placement_.shape[3]; }
  std::int64_t elements() const;
  bool has_gaps() const;
  void write_guards();
  std::size_t row_index(std::int64_t b, std::int64_t h, std::int64_t s) const {
    const auto entry = static_cast<std::size_t>(b);
    return static_cast<std::size_t>(first_row_[entry] +
                                    h * placement_.slots[entry] + s);
  }
  template <typename Visit>
  void for_each_slot(Visit visit) const {
    for (std::int64_t b = 0; b < placement_.entries(); ++b)
      for (std::int64_t h = 0; h < heads(); ++h)
        for (std::int64_t s = 0;
             s < placement_.slots[static_cast<std::size_t>(b)]; ++s)
          visit(b, h, s);
  }
  std::uint64_t hash_row(const TensorView& view, std::int64_t b, std::int64_t h,
                         std::int64_t s) const;
  void fill_slot(std::int64_t b, std::int64_t h);
  bool rows_intact();
  void add_fault(std::int64_t byte, MemoryFault::Place place, std::size_t first,
                 std::vector<MemoryFault>& faults) const;
  void find_guard_faults(std::size_t first, std::vector<MemoryFault>& faults);
  void find_gap_faults(std::size_t first, std::vector<MemoryFault>& faults);
  void find_input_faults(std::size_t first, std::vector<MemoryFault>& faults);

  Memory* memory_ = nullptr;
  std::string_view name_;
  bool is_input_ = false;
  Dtype dtype_ = Dtype::kFp32;
  Placement placement_;
  std::size_t tensor_bytes_ = 0;
  std::byte* device_ = nullptr;
  std::vector<std::byte> staging_;       // Only when the host cannot reach it.
  RowFiller filler_;                     // What the rows were filled with.
  std::vector<std::int64_t> first_row_;  // of each entry
  std::vector<std::uint64_t> hashes_;    // [entry][head][position]
  bool damaged_ = false;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_GUARDED_BUFFER_H_
