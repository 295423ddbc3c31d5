// Between the guard's tensors, any layout and dtype, and ggml's, dense and in
// ggml's types. Large tensors are moved on `threads` threads.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_TRANSFER_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_TRANSFER_H_

#include <cstdint>

#include "adapters/llama_cpp/library.h"
#include "adapters/llama_cpp/storage.h"
#include "adapters/llama_cpp/token_rows.h"
#include "guard/base/tensor_view.h"
#include "guard/problem/problem.h"

namespace attnguard::ggml {

// Threads worth starting to move this many elements: starting them costs more
// than moving a small tensor, and idle ones keep spinning into the kernel's
// own time.
int threads_for(std::int64_t elements, int threads);

// The same elements with positions and channels exchanged: what softmax's V
// is, since ggml multiplies rows by rows. Of padded tensors only.
ConstTensorView transposed(const ConstTensorView& view);

// Copies a view to a dense ggml tensor with ne = {shape[3], rows.rows,
// shape[1], rows.streams}: rows.count positions of each entry, padding too
// where it is among them.
void gather(const Library& library, const ConstTensorView& from,
            const TokenRows& rows, const Storage& storage, int threads,
            void* to);

// How ggml lays out a result: elements between streams, heads and queries;
// channels are neighbours.
struct ResultStrides {
  std::int64_t stream, head, position;
};

// Writes the rows that exist in their entry; padding rows stay untouched.
void scatter(const Problem& problem, const float* from,
             const ResultStrides& strides, const TokenRows& rows, int threads,
             const TensorView& to);

// Writes softmax weights [keys.rows, queries.rows, num_heads, streams] to rows
// of max_len_kv keys; 0 past an entry's own keys.
void scatter_weights(const Problem& problem, const float* from,
                     const TokenRows& queries, const TokenRows& keys,
                     int threads, const TensorView& to);

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_TRANSFER_H_
