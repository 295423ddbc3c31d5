#include "adapters/libtorch/examples/model.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/version.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace attnguard::examples {
namespace {

at::Tensor attention(const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const at::Tensor& mask,
                     bool is_causal) {
  c10::optional<at::Tensor> given;
  if (mask.defined()) given = mask;
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(query, key, value, given, 0.0,
                                          is_causal);
#else
  return std::get<0>(at::_scaled_dot_product_attention(
      query, key, value, given, 0.0, /*need_attn_weights=*/true, is_causal));
#endif
}

struct Layer {
  at::Tensor qkv, out, up, down;  // weights
  at::Tensor key, value;          // the cache, [batch, heads, tokens, channels]
};

class Model {
 public:
  explicit Model(const ModelOptions& options) : options_(options) {
    at::manual_seed(options.seed);
    width_ = options.heads * options.head_dim;
    type_ =
        at::TensorOptions().dtype(options.half ? at::kBFloat16 : at::kFloat);
    for (int i = 0; i < kModelLayers; ++i)
      layers_.push_back({weight(3 * width_),
                         weight(width_),
                         weight(width_),
                         weight(width_),
                         {},
                         {}});
  }

  ModelResult result;

  // The next tokens' embeddings in, [batch, tokens, width]; what the last layer
  // gives out.
  at::Tensor step(at::Tensor x) {
    const std::int64_t tokens = x.size(1);
    const std::int64_t before =
        layers_[0].key.defined() ? layers_[0].key.size(2) : 0;
    at::Tensor mask;
    if (before > 0 && tokens > 1) mask = bottom_right(tokens, before + tokens);
    for (Layer& layer : layers_) {
      const at::Tensor mixed = attend(layer, normed(x), mask, before == 0);
      x = x + at::matmul(mixed, layer.out);
      x = x + at::matmul(at::relu(at::matmul(normed(x), layer.up)), layer.down);
    }
    result.tokens += x.size(0) * tokens;
    return x;
  }

  at::Tensor random_tokens(int tokens) {
    return at::randn({options_.batch, tokens, width_}, type_);
  }

 private:
  at::Tensor weight(std::int64_t columns) {
    return at::randn({width_, columns}, type_) *
           (1.5 / std::sqrt(static_cast<double>(width_)));
  }

  static at::Tensor normed(const at::Tensor& x) {
    return x / x.pow(2).mean(-1, true).add(1e-5).sqrt();
  }

  // [tokens, keys]: true where the key is not later than the query.
  static at::Tensor bottom_right(std::int64_t tokens, std::int64_t keys) {
    return at::ones({tokens, keys}, at::kBool).tril(keys - tokens);
  }

  at::Tensor heads(const at::Tensor& x) const {
    return x.view({x.size(0), x.size(1), options_.heads, options_.head_dim})
        .transpose(1, 2);
  }

  at::Tensor attend(Layer& layer, const at::Tensor& x, const at::Tensor& mask,
                    bool first) {
    const std::vector<at::Tensor> parts = at::matmul(x, layer.qkv).chunk(3, -1);
    const at::Tensor query = heads(parts[0].contiguous());
    const at::Tensor key = heads(parts[1].contiguous());
    const at::Tensor value = heads(parts[2].contiguous());
    layer.key = layer.key.defined() ? at::cat({layer.key, key}, 2) : key;
    layer.value =
        layer.value.defined() ? at::cat({layer.value, value}, 2) : value;
    ++result.attention;
    const at::Tensor output =
        attention(query, layer.key, layer.value, mask, first);
    return output.transpose(1, 2).reshape({x.size(0), x.size(1), width_});
  }

  ModelOptions options_;
  std::int64_t width_ = 0;
  at::TensorOptions type_;
  std::vector<Layer> layers_;
};

void serve(const ModelOptions& options, ModelResult& result) {
  const at::NoGradGuard no_grad;
  Model model(options);
  const auto start = std::chrono::steady_clock::now();
  at::Tensor last = model.step(model.random_tokens(options.prompt));
  if (options.chunk > 0) last = model.step(model.random_tokens(options.chunk));
  for (int i = 0; i < options.steps; ++i)
    last = model.step(last.slice(1, last.size(1) - 1));
  result = model.result;
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
}

// --- faults ----------------------------------------------------------------

struct Corruption {
  std::string name;
  int layer = 0, first = 0;
  int calls = 0;
  std::string done;
} corruption;

struct Spoilt : at::ObserverContext {
  at::Tensor tensor, saved;  // Put back when the kernel is done.
};

bool is_attention(const at::RecordFunction& call) {
  return std::strcmp(call.name(), "aten::_scaled_dot_product_attention") == 0 ||
         std::strcmp(call.name(), "aten::scaled_dot_product_attention") == 0;
}

void note(const std::string& what) {
  if (corruption.done.empty())
    corruption.done = "layer " + std::to_string(corruption.layer) + ": " + what;
}

// Row 0 is shown the token behind its own.
void spoil_mask(const at::IValue& given) {
  if (!given.isTensor()) return;
  at::Tensor mask = given.toTensor();
  const std::int64_t own = mask.size(-1) - mask.size(-2);
  if (own + 1 >= mask.size(-1)) return;
  mask.select(-2, 0).select(-1, own + 1).fill_(true);
  note("query 0 was shown key " + std::to_string(own + 1));
}

void spoil(const at::RecordFunction& call, Spoilt& spoilt) {
  const at::DisableRecordFunctionGuard quiet;
  if (corruption.name == "mask-bit") spoil_mask(call.inputs()[3]);
  if (corruption.name == "stale-page") {
    at::Tensor key = call.inputs()[1].toTensor();
    if (key.size(2) < 8) return;
    spoilt.tensor = key.slice(2, 4, 8);
    spoilt.saved = spoilt.tensor.clone();
    spoilt.tensor.copy_(key.slice(2, 0, 4));
    note("keys 4 to 7 were keys 0 to 3 while the kernel ran");
  }
  if (corruption.name == "scale") {
    spoilt.tensor = call.inputs()[0].toTensor();
    spoilt.saved = spoilt.tensor.clone();
    spoilt.tensor.mul_(1.25);
    note("scores were 1.25 times as large");
  }
}

std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& call) {
  if (!is_attention(call)) return nullptr;
  const int number = corruption.calls++;
  if (number % kModelLayers != corruption.layer ||
      number / kModelLayers < corruption.first)
    return nullptr;
  auto spoilt = std::make_unique<Spoilt>();
  spoil(call, *spoilt);
  return spoilt;
}

void after(const at::RecordFunction& call, at::ObserverContext* context) {
  auto* spoilt = static_cast<Spoilt*>(context);
  if (spoilt == nullptr) return;
  const at::DisableRecordFunctionGuard quiet;
  if (spoilt->saved.defined()) spoilt->tensor.copy_(spoilt->saved);
  if (corruption.name != "nan" || call.outputs().empty()) return;
  at::Tensor output = call.outputs()[0].toTensor();
  output.select(0, 0).select(0, 0).select(0, 0).select(0, 0).fill_(
      std::numeric_limits<double>::quiet_NaN());
  note("one element of the output is NaN");
}

}  // namespace

ModelResult run_model(const ModelOptions& options) {
  ModelResult result;
  try {
    serve(options, result);
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

void start_corruption(const std::string& name, int layer, int first) {
  corruption = {name, layer, first, 0, {}};
  if (name == "none") return;
  at::addGlobalCallback(at::RecordFunctionCallback(before, after)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
}

std::string corruption_done() { return corruption.done; }

}  // namespace attnguard::examples
