// The tensors and nodes that compute one problem, allocated by ggml.
//
// Shapes, fastest axis first as ggml writes them:
//   query   [head_dim_qk, seq_len_q, num_heads, batch]        f32
//   key     [head_dim_qk, seq_len_kv, num_kv_heads, batch]    its storage
//   value   [head_dim_v, seq_len_kv, num_kv_heads, batch]     its storage;
//           softmax: [seq_len_kv, head_dim_v, num_kv_heads, batch]
//   mask    [seq_len_kv, mask_rows, 1, batch]       flash f16, softmax f32
//   result  flash   [head_dim_v, num_heads, seq_len_q, batch]  f32
//           softmax [head_dim_v, seq_len_q, num_heads, batch]  f32
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_GRAPH_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_GRAPH_H_

#include <memory>

#include "adapters/llama_cpp/library.h"
#include "adapters/llama_cpp/storage.h"
#include "adapters/llama_cpp/transfer.h"
#include "guard/base/status.h"
#include "guard/problem/problem.h"

namespace attnguard::ggml {

enum class Kernel { kFlash, kSoftmax };

struct Settings {
  Kernel kernel = Kernel::kFlash;
  const Storage* key = nullptr;  // nullptr: as the problem's dtype
  const Storage* value = nullptr;
  int threads = 1;

  const Storage& key_storage(Dtype dtype) const {
    return key ? *key : storage_of(dtype);
  }
  const Storage& value_storage(Dtype dtype) const {
    return value ? *value : storage_of(dtype);
  }
};

class AttentionGraph {
 public:
  // The problem has queries and keys, and Session::unsupported is empty.
  // kOutOfMemory when ggml cannot allocate the tensors.
  static Result<std::unique_ptr<AttentionGraph>> build(const Library& library,
                                                       Backend* backend,
                                                       const Settings& settings,
                                                       const Problem& problem);
  ~AttentionGraph();
  AttentionGraph(const AttentionGraph&) = delete;
  AttentionGraph& operator=(const AttentionGraph&) = delete;

  const Problem& problem() const { return problem_; }

  // Where to put the inputs and find the result; valid as long as the graph.
  void* query() const { return library_.call.get_data(query_); }
  void* key() const { return library_.call.get_data(key_); }
  void* value() const { return library_.call.get_data(value_); }
  const float* result() const {
    return static_cast<const float*>(library_.call.get_data(result_));
  }
  ResultStrides result_strides() const;

  Status compute(Backend* backend);

 private:
  AttentionGraph(const Library& library, const Settings& settings,
                 const Problem& problem)
      : library_(library), settings_(settings), problem_(problem) {}

  void add_inputs();
  void add_flash();
  void add_softmax();
  void fill_mask();

  const Library& library_;
  Settings settings_;
  Problem problem_;
  Context* context_ = nullptr;
  Buffer* buffer_ = nullptr;
  Graph* graph_ = nullptr;
  Tensor* query_ = nullptr;
  Tensor* key_ = nullptr;
  Tensor* value_ = nullptr;
  Tensor* mask_ = nullptr;  // nullptr: every key is allowed
  Tensor* result_ = nullptr;
};

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_GRAPH_H_
