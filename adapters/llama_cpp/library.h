// The ggml libraries of one folder, opened at run time, and the functions of
// their C interface that the adapter calls.
//
// The declarations are this project's own and cover functions only: contexts,
// tensors, graphs, buffers, backends and devices stay opaque pointers, so that
// no layout inside ggml matters. Enumerators are passed as int, which is what
// C compilers make of ggml's enums; their values are those of ggml.h and
// ggml-backend.h.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIBRARY_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "guard/base/status.h"

namespace attnguard::ggml {

struct Context;
struct Tensor;
struct Graph;
struct Buffer;
struct Backend;
struct Device;
struct Registry;

inline constexpr int kPrecisionF32 = 10;  // GGML_PREC_F32
inline constexpr int kStatusSuccess = 0;  // GGML_STATUS_SUCCESS
inline constexpr int kDeviceCpu = 0;      // GGML_BACKEND_DEVICE_TYPE_CPU

// struct ggml_init_params, the only one that is passed by value.
struct InitParams {
  std::size_t mem_size;
  void* mem_buffer;
  bool no_alloc;
};

using LogCallback = void (*)(int level, const char* text, void* user_data);
using SetThreads = void (*)(Backend*, int);

// Each member is the function of the same name behind "ggml_".
struct Functions {
  void (*log_set)(LogCallback, void*);
  Context* (*init)(InitParams);
  void (*free)(Context*);
  std::size_t (*tensor_overhead)();
  std::size_t (*graph_overhead)();
  Tensor* (*new_tensor_4d)(Context*, int type, std::int64_t, std::int64_t,
                           std::int64_t, std::int64_t);
  void* (*get_data)(const Tensor*);
  std::size_t (*row_size)(int type, std::int64_t elements);
  std::size_t (*quantize_chunk)(int type, const float* from, void* to,
                                std::int64_t start, std::int64_t rows,
                                std::int64_t row_elements,
                                const float* importance);
  Tensor* (*mul_mat)(Context*, Tensor*, Tensor*);
  void (*mul_mat_set_prec)(Tensor*, int precision);
  Tensor* (*scale)(Context*, Tensor*, float factor);
  Tensor* (*tanh)(Context*, Tensor*);
  Tensor* (*view_4d)(Context*, Tensor*, std::int64_t, std::int64_t,
                     std::int64_t, std::int64_t, std::size_t row_bytes,
                     std::size_t head_bytes, std::size_t stream_bytes,
                     std::size_t offset);
  Tensor* (*transpose)(Context*, Tensor*);
  Tensor* (*cont)(Context*, Tensor*);
  Tensor* (*soft_max_ext)(Context*, Tensor* scores, Tensor* mask, float scale,
                          float max_bias);
  Tensor* (*flash_attn_ext)(Context*, Tensor* q, Tensor* k, Tensor* v,
                            Tensor* mask, float scale, float max_bias,
                            float logit_softcap);
  void (*flash_attn_ext_set_prec)(Tensor*, int precision);
  Graph* (*new_graph)(Context*);
  void (*build_forward_expand)(Graph*, Tensor*);
  Buffer* (*backend_alloc_ctx_tensors)(Context*, Backend*);
  void (*backend_buffer_free)(Buffer*);
  int (*backend_graph_compute)(Backend*, Graph*);
  void (*backend_free)(Backend*);
  Backend* (*backend_dev_init)(Device*, const char* parameters);
  Registry* (*backend_dev_backend_reg)(Device*);
  void* (*backend_reg_get_proc_address)(Registry*, const char* name);
  Device* (*backend_dev_by_type)(int type);
  void (*backend_load_all_from_path)(const char* folder);

  // Younger than the rest: nullptr where the library has none.
  void (*soft_max_add_sinks)(Tensor* soft_max, Tensor* sinks);
  void (*flash_attn_ext_add_sinks)(Tensor* flash_attn, Tensor* sinks);
  const char* (*version)();
};

// Loaded once per process and never unloaded: ggml keeps one global registry
// of backends, and the system's loader one libggml-base.so per name.
struct Library {
  Functions call;
  Device* cpu;
  SetThreads set_threads;
  std::string folder;

  // "ggml 0.15.3", or "ggml" when it does not say.
  std::string description() const;
};

// lib<stem>.so, or the name with a version in it: lib<stem>.so.0,
// lib<stem>.v0.4.0.so. Empty when the folder has neither.
std::string find_shared_library(const std::string& folder,
                                const std::string& stem);

// `path` is the path= option or empty. kNotFound lists the folders looked in
// and the command that fetches the libraries, or names the symbol that is
// missing. kUnsupported when ggml was already loaded from another folder.
Result<std::shared_ptr<const Library>> load_library(const std::string& path);

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIBRARY_H_
