// Between the guard's tensors, any layout and dtype, and ggml's, dense and in
// ggml's types. Large tensors are moved on `threads` threads.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_TRANSFER_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_TRANSFER_H_

#include <cstdint>

#include "adapters/llama_cpp/library.h"
#include "adapters/llama_cpp/storage.h"
#include "guard/base/tensor_view.h"
#include "guard/problem/problem.h"

namespace attnguard::ggml {

// The same elements with positions and channels exchanged: what softmax's V
// is, since ggml multiplies rows by rows.
ConstTensorView transposed(const ConstTensorView& view);

// Copies a view to a dense ggml tensor with ne = {shape[3], shape[2], shape[1],
// shape[0]}. Every slot is copied, padding too.
void gather(const Library& library, const ConstTensorView& from,
            const Storage& storage, int threads, void* to);

// How ggml lays out a result: elements between batch entries, heads and
// queries; channels are neighbours.
struct ResultStrides {
  std::int64_t batch, head, position;
};

// Writes the rows that exist in their entry; padding rows stay untouched.
void scatter(const Problem& problem, const float* from,
             const ResultStrides& strides, int threads, const TensorView& to);

// Rows of a mask tensor: seq_len_q rounded up to 64, which flash attention
// asked for until 2025.
std::int64_t mask_rows(const Problem& problem);

// True when some slot that the kernel reads is not allowed: without one the
// kernels run without a mask.
bool needs_mask(const Problem& problem);

// Fills [seq_len_kv, mask_rows, 1, batch] with 0 where a key is allowed and
// -inf elsewhere, padding included.
void fill_mask_f16(const Problem& problem, int threads, void* to);
void fill_mask_f32(const Problem& problem, int threads, void* to);

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_TRANSFER_H_
