// at::_scaled_dot_product_attention of LibTorch 1.13, and its public name from
// 2.0 on. The only file that includes ATen; see kernel.h.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <omp.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <string>
#include <tuple>

#include "adapters/libtorch/kernel.h"

namespace attnguard::libtorch {
namespace {

constexpr bool kIsPublic = TORCH_VERSION_MAJOR >= 2;
constexpr bool kHasScale = TORCH_VERSION_MAJOR > 2 ||
                           (TORCH_VERSION_MAJOR == 2 &&
                            TORCH_VERSION_MINOR >= 1);

at::ScalarType scalar_type(Element element) {
  switch (element) {
    case Element::kFp64:
      return at::kDouble;
    case Element::kFp32:
      return at::kFloat;
    case Element::kFp16:
      return at::kHalf;
    case Element::kBf16:
      return at::kBFloat16;
    case Element::kBool:
      return at::kBool;
  }
  return at::kFloat;
}

// A view of the caller's memory, as a user's transposed tensors are.
at::Tensor view(const Tensor& tensor) {
  return at::from_blob(const_cast<void*>(tensor.data),
                       at::IntArrayRef(tensor.shape, 4),
                       at::IntArrayRef(tensor.strides, 4),
                       at::TensorOptions().dtype(scalar_type(tensor.element)));
}

void copy_to(void* data, const at::Tensor& result) {
  at::from_blob(data, result.sizes(), result.options()).copy_(result);
}

// Keys and values have as many heads as queries in every release.
at::Tensor for_each_head(const at::Tensor& tensor, std::int64_t heads) {
  if (tensor.size(1) == heads) return tensor;
  return tensor.repeat_interleave(heads / tensor.size(1), 1);
}

// Both settings are the process's or the thread's; the caller's loops keep
// theirs.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) {
    static int last = 0;
    if (count != last) at::set_num_threads(last = count);
    omp_set_num_threads(count);
  }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

std::tuple<at::Tensor, at::Tensor> attention(const SdpaCall& call,
                                             const at::Tensor& query,
                                             const at::Tensor& key,
                                             const at::Tensor& value) {
  c10::optional<at::Tensor> mask;
  if (call.mask.data != nullptr) mask = view(call.mask);
#if TORCH_VERSION_MAJOR >= 2
  if constexpr (kHasScale) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 1
    c10::optional<double> scale;
    if (call.factor != 1)
      scale = call.factor / std::sqrt(static_cast<double>(query.size(3)));
    return {at::scaled_dot_product_attention(query, key, value, mask, 0.0,
                                             call.is_causal, scale),
            at::Tensor()};
#endif
  }
  return {at::scaled_dot_product_attention(query, key, value, mask, 0.0,
                                           call.is_causal),
          at::Tensor()};
#else
  return at::_scaled_dot_product_attention(query, key, value, mask, 0.0,
                                           call.need_weights, call.is_causal);
#endif
}

void compute(const SdpaCall& call) {
  const at::NoGradGuard no_grad;
  const Threads threads(call.threads);
  at::Tensor query = view(call.query);
  if (!kHasScale && call.factor != 1) query = query.mul(call.factor);
  const at::Tensor key = for_each_head(view(call.key), query.size(1));
  const at::Tensor value = for_each_head(view(call.value), query.size(1));
  const auto [output, weights] = attention(call, query, key, value);
  copy_to(call.output, output);
  if (call.weights != nullptr) copy_to(call.weights, weights);
}

// The first line: the others are of no use to a reader.
bool failed(const char* text, char* message, std::size_t capacity) {
  const std::size_t length = std::strcspn(text, "\n");
  const std::size_t count = std::min(length, capacity - 1);
  std::memcpy(message, text, count);
  message[count] = '\0';
  return false;
}

bool run(const SdpaCall* call, char* message, std::size_t capacity) {
  try {
    compute(*call);
    return true;
  } catch (const c10::Error& error) {
    return failed(error.what_without_backtrace(), message, capacity);
  } catch (const std::exception& error) {
    return failed(error.what(), message, capacity);
  } catch (...) {
    return failed("it threw something that is no std::exception", message,
                  capacity);
  }
}

constexpr Kernel kKernel = {
    .call_size = sizeof(SdpaCall),
    .version = TORCH_VERSION,
    .function = kIsPublic ? "at::scaled_dot_product_attention"
                          : "at::_scaled_dot_product_attention",
    .has_weights = !kIsPublic,
    .has_scale = kHasScale,
    .run = run,
};

}  // namespace
}  // namespace attnguard::libtorch

extern "C" __attribute__((visibility("default")))
const attnguard::libtorch::Kernel*
attnguard_libtorch_kernel() {
  return &attnguard::libtorch::kKernel;
}
