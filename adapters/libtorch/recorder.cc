// LibTorch's record-function callback: sees every call of scaled dot product
// attention in the process, of models that know nothing of it.
#include "adapters/libtorch/recorder.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/version.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace attnguard::libtorch {
namespace {

// 1.13: query, key, value, mask, dropout, need_attn_weights, is_causal
// 2.x:  query, key, value, mask, dropout, is_causal, scale, enable_gqa
constexpr const char* kPrivateName = "aten::_scaled_dot_product_attention";
constexpr const char* kPublicName = "aten::scaled_dot_product_attention";

Listener listener;  // Written only while no callback is registered.
at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;

struct Seen : at::ObserverContext {
  at::Tensor query, key, value, mask;
  bool is_causal = false;
  double dropout = 0, scale = 0;
};

std::optional<Element> element_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return Element::kFp64;
    case at::kFloat:
      return Element::kFp32;
    case at::kHalf:
      return Element::kFp16;
    case at::kBFloat16:
      return Element::kBf16;
    case at::kBool:
      return Element::kBool;
    default:
      return std::nullopt;
  }
}

// Fewer than four axes are the last ones; but tensors of calls with three axes
// have one head. Sets `problem` where it cannot be done.
Tensor describe(const at::Tensor& tensor, std::int64_t call_axes, bool mask,
                const char*& problem) {
  Tensor result{};
  if (!tensor.defined()) return result;
  const std::optional<Element> element = element_of(tensor);
  const std::int64_t axes = tensor.dim();
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided)
    problem = "a tensor lies where the host cannot read";
  else if (!element)
    problem = "an element type that is not known here";
  else if (axes > 4 || axes < (mask ? 2 : 3))
    problem = "a tensor of other than three or four axes";
  if (problem != nullptr) return result;
  result.data = tensor.data_ptr();
  result.element = *element;
  for (int i = 0; i < 4; ++i) {
    // [batch, positions, channels] has its head between the first two; a mask
    // of three axes beside queries of four is [heads, queries, keys].
    std::int64_t from = i - (4 - axes);
    if (axes == 3 && call_axes == 3) from = i == 0 ? 0 : i == 1 ? -1 : i - 1;
    result.shape[i] = from < 0 ? 1 : tensor.size(from);
    result.strides[i] = from < 0 ? 0 : tensor.stride(from);
  }
  return result;
}

bool is_attention(const char* name) {
  return std::strcmp(name, kPrivateName) == 0 ||
         std::strcmp(name, kPublicName) == 0;
}

std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& call) {
  if (!is_attention(call.name())) return nullptr;
  if (!listener.wants(listener.user)) return nullptr;
  const auto inputs = call.inputs();
  if (inputs.size() < 6) return nullptr;
  auto seen = std::make_unique<Seen>();
  seen->query = inputs[0].toTensor();
  seen->key = inputs[1].toTensor();
  seen->value = inputs[2].toTensor();
  if (inputs[3].isTensor()) seen->mask = inputs[3].toTensor();
  seen->dropout = inputs[4].toDouble();
  const bool weights = std::strcmp(call.name(), kPrivateName) == 0;
  seen->is_causal = inputs[weights && inputs.size() > 6 ? 6 : 5].toBool();
  if (!weights && inputs.size() > 6 && inputs[6].isDouble())
    seen->scale = inputs[6].toDouble();
  return seen;
}

void finished(const at::RecordFunction& call, at::ObserverContext* context) {
  const auto* seen = static_cast<const Seen*>(context);
  if (seen == nullptr) return;
  const auto& outputs = call.outputs();
  SeenCall result{};
  const char*& problem = result.problem;
  const std::int64_t axes = seen->query.dim();
  if (outputs.empty() || !outputs[0].isTensor())
    problem = "the call has no output";
  else
    result.output = describe(outputs[0].toTensor(), axes, false, problem);
  result.query = describe(seen->query, axes, false, problem);
  result.key = describe(seen->key, axes, false, problem);
  result.value = describe(seen->value, axes, false, problem);
  result.mask = describe(seen->mask, axes, true, problem);
  if (outputs.size() > 1 && outputs[1].isTensor())
    result.weights = describe(outputs[1].toTensor(), axes, false, problem);
  result.is_causal = seen->is_causal;
  result.dropout = seen->dropout;
  result.scale = seen->scale;
  listener.seen(listener.user, &result);
}

bool start(const Listener* given, double probability) {
  if (handle != at::INVALID_CALLBACK_HANDLE) return false;
  listener = *given;
  handle = at::addGlobalCallback(at::RecordFunctionCallback(started, finished)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .samplingProb(probability)
                                     .scopes({at::RecordScope::FUNCTION}));
  return true;
}

void stop() {
  if (handle == at::INVALID_CALLBACK_HANDLE) return;
  at::removeCallback(handle);
  handle = at::INVALID_CALLBACK_HANDLE;
}

constexpr Recorder kRecorder = {
    .call_size = sizeof(SeenCall),
    .version = TORCH_VERSION,
    .start = start,
    .stop = stop,
};

}  // namespace
}  // namespace attnguard::libtorch

extern "C" __attribute__((visibility("default")))
const attnguard::libtorch::Recorder*
attnguard_libtorch_recorder() {
  return &attnguard::libtorch::kRecorder;
}
