// The attention of one layer in a ggml graph that llama.cpp built: which node
// it is, and where its tensors lie.
//
//   flash attention on    one node, GGML_OP_FLASH_ATTN_EXT, with query, key,
//                         value and mask as sources
//   off                   GGML_OP_MUL_MAT of value and the softmax, whose own
//                         source is (through soft-cap nodes) that of key and
//                         query; the softmax is named "kq_soft_max-N"
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ATTENTION_NODE_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ATTENTION_NODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/dtype.h"
#include "guard/base/tensor_view.h"

struct ggml_tensor;  // ggml's own, C

namespace attnguard::llama_cpp {

// A tensor with its axes in the guard's order: [stream, head, row, channel].
// Rows are tokens of the ubatch or cells of the cache.
struct Place {
  const std::byte* data = nullptr;
  int type = 0;  // enum ggml_type
  Shape4 shape = {0, 0, 0, 0};
  Shape4 bytes = {0, 0, 0, 0};  // from one to the next; channel: of a block
                                // where the type has blocks

  std::optional<Dtype> dtype() const;  // nullopt: quantised in blocks
  const std::byte* at(std::int64_t stream, std::int64_t head, std::int64_t row,
                      std::int64_t channel = 0) const {
    return data + stream * bytes[0] + head * bytes[1] + row * bytes[2] +
           channel * bytes[3];
  }
};

struct AttentionNode {
  std::string_view problem;  // Why it cannot be judged; empty: it can.

  int layer = -1;  // -1: no cache says so.
  bool flash = false;
  Place query;    // [streams, num_heads,    tokens, head_dim_qk]
  Place key;      // [streams, num_kv_heads, cells,  head_dim_qk]
  Place value;    // [streams, num_kv_heads, cells,  head_dim_v]
  Place output;   // [streams, num_heads,    tokens, head_dim_v]
  Place weights;  // [streams, num_heads,    tokens, cells]; none with flash
  Place mask;     // [streams or 1, 1,       tokens, cells]; data may be nullptr

  double scale = 1;
  double softcap = 0;            // 0: none
  double max_bias = 0;           // of ALiBi; 0: none
  const float* sinks = nullptr;  // [num_heads], or none

  // Where the first stream of key and value begins in its cache, in streams.
  std::int64_t first_stream = 0;
  std::int64_t cells_per_stream = 0;  // of the cache; 0: there is none
  std::int64_t cache_streams = 0;
};

// What a node is to the hook.
enum class NodeKind { kOther, kWriteKey, kWriteValue, kSoftmax, kAttention };

NodeKind kind_of(const ggml_tensor* node);

// The N of "cache_k_lN", "kq_soft_max-N"; -1 when the name has none.
int layer_of(const ggml_tensor* node);

// A node of kAttention. Reads the graph, no tensor's data.
AttentionNode describe(const ggml_tensor* node);

// Of a node of kSoftmax: its query, which may be overwritten before the
// attention node is computed. data is nullptr where it is not found.
Place query_of_softmax(const ggml_tensor* softmax);

// A node of kWriteKey or kWriteValue: row r of `from` goes to row index[r] of
// `to`. Rows of a transposed value cache have one element each.
struct CacheWrite {
  Place from;  // [1, 1, rows, channels], f32 or f16
  Place to;    // [1, 1, all rows, channels]
  std::vector<std::int64_t> index;
};

// Fills `write`, reusing its memory. False where an index is out of range, or
// a tensor lies where the host cannot read.
bool read_write(const ggml_tensor* node, CacheWrite& write);

// The cache that a write goes to: its cells in a stream, and its streams.
struct CacheShape {
  std::int64_t cells_per_stream = 0;
  std::int64_t streams = 0;
};
CacheShape cache_shape(const ggml_tensor* node);

// The tensor that holds the indices of a write; layers of one cache share it.
const void* index_tensor(const ggml_tensor* node);

// Whether the host may read the tensor's data.
bool on_host(const ggml_tensor* tensor);

// Decodes `count` elements of any of ggml's types; a row of blocks begins at a
// block.
void decode_row(int type, const std::byte* from, std::int64_t count, float* to);

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ATTENTION_NODE_H_
