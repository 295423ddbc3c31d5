// What crosses between the adapter and aten.cc, the one file that includes
// ATen: plain data, no type of the standard library. LibTorch comes built for
// either of libstdc++'s ABIs, and takes a second to load: aten.cc is a module
// of its own that the adapter loads when an engine of it is opened.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_KERNEL_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_KERNEL_H_

#include <cstddef>
#include <cstdint>

namespace attnguard::libtorch {

enum class Element : std::int32_t { kFp64, kFp32, kFp16, kBf16, kBool };

// Any strides, counted in elements; read only. data is nullptr for none.
struct Tensor {
  const void* data;
  Element element;
  std::int64_t shape[4];
  std::int64_t strides[4];
};

struct SdpaCall {
  Tensor query;  // [batch, heads, queries, channels]
  Tensor key;    // [batch, heads / a whole number, keys, channels]
  Tensor value;
  Tensor mask;  // [batch, 1, queries, keys], boolean or of the query's type
  bool is_causal;
  bool need_weights;  // Only where the kernel has weights.

  // A factor on the scores beside 1 / sqrt(channels). Where the kernel has no
  // scale, a power of two.
  double factor;
  std::int32_t threads;

  // Dense results of the query's type.
  void* output;   // [batch, heads, queries, value channels]
  void* weights;  // [batch, heads, queries, keys] or nullptr
};

struct Kernel {
  std::size_t call_size;  // sizeof(SdpaCall) where the module was built.
  const char* version;    // "1.13.0"
  const char* function;   // "at::_scaled_dot_product_attention"
  bool has_weights;
  bool has_scale;

  // False: message, `capacity` bytes, says why. Never throws.
  bool (*run)(const SdpaCall* call, char* message, std::size_t capacity);
};

// What the module exports as kKernelSymbol.
using GetKernel = const Kernel* (*)();
inline constexpr const char* kKernelSymbol = "attnguard_libtorch_kernel";

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_KERNEL_H_
