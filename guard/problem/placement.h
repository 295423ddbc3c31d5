// Where the tensors of a problem lie in memory: padded (one row of slots per
// batch entry), packed (one sequence after another) or paged (blocks that a
// table finds). Probes fill and read by logical token on every one of them.
#ifndef ATTNGUARD_GUARD_PROBLEM_PLACEMENT_H_
#define ATTNGUARD_GUARD_PROBLEM_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "guard/base/tensor_view.h"
#include "guard/problem/problem.h"

namespace attnguard {

struct Placement {
  Shape4 shape = {0, 0, 0, 0};  // Problem::shape
  Shape4 strides = {0, 0, 0, 0};
  std::int64_t extent = 0;  // Elements that the buffer holds.

  // nullptr for padded tensors.
  std::shared_ptr<const TokenMap> tokens;

  // How many positions each entry has, used or not: [batch]. Packed and paged
  // tensors have one entry more: the places that belong to nobody.
  std::vector<std::int64_t> slots;

  std::int64_t entries() const {
    return static_cast<std::int64_t>(slots.size());
  }
};

// Blocks of a paged tensor that no sequence refers to.
inline constexpr std::int64_t kSpareBlocks = 3;

// Block ids are shuffled by a fixed rule of the problem's lengths, so that the
// k-th block of an entry is not where a kernel that ignores the table looks.
// Each row of the table is one entry longer than the longest sequence needs;
// what a row does not use names a block that belongs to nobody.
Placement place_tensor(const Problem& problem, TensorRole role);

// [batch + 1]: the first token of each sequence, and the end of the last.
std::vector<std::int32_t> cumulative_lengths(
    const Problem& problem, const std::vector<std::int64_t>& lengths);

// The strides of Problem::layout, and the elements of the buffer.
Shape4 layout_strides(const Problem& problem, TensorRole role);
std::int64_t tensor_extent(const Problem& problem, TensorRole role);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_PLACEMENT_H_
