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
#include <vector>

#include "guard/engine/memory.h"
#include "guard/probe/execute.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Fills one row of a tensor: (batch, head, position, channels).
using RowFiller =
    std::function<void(std::int64_t, std::int64_t, std::int64_t, double*)>;

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  // False when there is not enough memory. `memory` must outlive the buffer.
  bool allocate(Memory& memory, const Problem& problem, TensorRole role);

  TensorView host_view() {
    return {host() + kGuardBytes, dtype_, shape_, strides_};
  }
  TensorView device_view() {
    return {device_ + kGuardBytes, dtype_, shape_, strides_};
  }

  // An input: every row from the pattern, hashes remembered. After damage
  // the guard bytes are renewed too.
  void fill(RowFiller filler);

  // The output: every element, gaps too, is the poison NaN.
  void poison();

  Status upload();
  Status download();

  // Appends what changed although the engine must not change it: bytes around
  // the tensor, gaps between its rows, and input rows.
  void find_faults(std::vector<MemoryFault>& faults);

 private:
  // A multiple of every alignment that kernels ask for, and wide enough for a
  // runaway vector store.
  static constexpr std::size_t kGuardBytes = 4096;

  std::byte* host() {
    return memory_->host_accessible() ? device_ : staging_.data();
  }
  std::size_t total_bytes() const { return tensor_bytes_ + 2 * kGuardBytes; }
  std::int64_t elements() const {
    return shape_[0] * shape_[1] * shape_[2] * shape_[3];
  }
  bool has_gaps() const;
  void write_guards();
  std::size_t row_index(std::int64_t b, std::int64_t h, std::int64_t s) const {
    return static_cast<std::size_t>((b * shape_[1] + h) * shape_[2] + s);
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
  TensorRole role_ = TensorRole::kQuery;
  Dtype dtype_ = Dtype::kFp32;
  Shape4 shape_{}, strides_{};
  std::size_t tensor_bytes_ = 0;
  std::byte* device_ = nullptr;
  std::vector<std::byte> staging_;     // Only when the host cannot reach it.
  RowFiller filler_;                   // What the rows were filled with.
  std::vector<std::uint64_t> hashes_;  // [batch][head][position]
  bool damaged_ = false;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_GUARDED_BUFFER_H_
