// The tensors and nodes that compute one problem, allocated by ggml.
//
// Shapes, fastest axis first as ggml writes them; queries, keys and streams
// are the rows of token_rows.h:
//   query   [head_dim_qk, queries, num_heads, streams]        f32
//   key     [head_dim_qk, keys, num_kv_heads, streams]        its storage
//   value   [head_dim_v, keys, num_kv_heads, streams]         its storage; a
//           view of the key's first channels where the value lies in the key;
//           softmax: [keys, head_dim_v, num_kv_heads, streams], made by ggml
//           where it cannot be stored like that
//   mask    [keys, mask_rows, 1, streams]           flash f16, softmax f32
//   sinks   [num_heads]                                       f32
//   result  flash   [head_dim_v, num_heads, queries, streams]  f32
//           softmax [head_dim_v, queries, num_heads, streams]  f32
//   weights softmax [keys, queries, num_heads, streams]        f32
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_GRAPH_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_GRAPH_H_

#include <memory>

#include "adapters/llama_cpp/library.h"
#include "adapters/llama_cpp/storage.h"
#include "adapters/llama_cpp/token_rows.h"
#include "adapters/llama_cpp/transfer.h"
#include "guard/base/status.h"
#include "guard/engine/engine.h"
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
  const TokenRows& queries() const { return queries_; }
  const TokenRows& keys() const { return keys_; }

  // Whether value() is to be filled with keys and channels exchanged.
  bool stores_value_transposed() const;

  // Takes the mask from the call's tensor, which may differ from call to call.
  void set_mask(const AttentionCall& call);

  // Where to put the inputs and find the results; valid as long as the graph.
  // value() is nullptr where the value lies in the key; weights() where the
  // kernel has none.
  void* query() const { return library_.call.get_data(query_); }
  void* key() const { return library_.call.get_data(key_); }
  void* value() const {
    return problem_.value_in_key ? nullptr : library_.call.get_data(value_);
  }
  const float* result() const {
    return static_cast<const float*>(library_.call.get_data(result_));
  }
  ResultStrides result_strides() const;
  const float* weights() const {
    return weights_
               ? static_cast<const float*>(library_.call.get_data(weights_))
               : nullptr;
  }

  Status compute(Backend* backend);

 private:
  AttentionGraph(const Library& library, const Settings& settings,
                 const Problem& problem)
      : library_(library),
        settings_(settings),
        problem_(problem),
        queries_(query_rows(problem)),
        keys_(key_rows(problem)) {}

  void add_inputs();
  void add_value();
  void add_flash();
  void add_softmax();
  Tensor* capped(Tensor* scores, float& scale);
  void fill_sinks();

  const Library& library_;
  Settings settings_;
  Problem problem_;
  TokenRows queries_, keys_;
  Context* context_ = nullptr;
  Buffer* buffer_ = nullptr;
  Graph* graph_ = nullptr;
  Tensor* query_ = nullptr;
  Tensor* key_ = nullptr;
  Tensor* value_ = nullptr;
  Tensor* mask_ = nullptr;   // nullptr: every key is allowed
  Tensor* sinks_ = nullptr;  // nullptr: none
  Tensor* weights_ = nullptr;
  Tensor* result_ = nullptr;
};

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_GRAPH_H_
