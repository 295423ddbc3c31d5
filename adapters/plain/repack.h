// Copies of a call's tensors in another layout, for functions that expect one.
#ifndef ATTNGUARD_ADAPTERS_PLAIN_REPACK_H_
#define ATTNGUARD_ADAPTERS_PLAIN_REPACK_H_

#include <array>
#include <vector>

#include "guard/engine/engine.h"

namespace attnguard {

// The strides of the role's tensor in this layout, without gaps.
Shape4 layout_strides(const Problem& problem, TensorRole role, Layout layout);

// True when the problem's tensor already lies like that. Strides of axes with
// fewer than two elements do not matter.
bool has_layout(const Problem& problem, TensorRole role, Layout layout);

// Elements are copied bit for bit, padding slots and the output's old contents
// included: what the function must not read, and what it fails to write, stays
// as the guard prepared it.
class RepackedCall {
 public:
  RepackedCall(const AttentionCall& call, Layout layout);

  // The same problem on the copies.
  const AttentionCall& call() const { return packed_; }

  // Copies the output rows within each entry's own length back.
  void copy_output_back() const;

 private:
  AttentionCall original_;
  AttentionCall packed_;
  std::array<std::vector<std::byte>, 4> buffers_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_REPACK_H_
