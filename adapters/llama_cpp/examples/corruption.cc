#include "adapters/llama_cpp/examples/corruption.h"

#include <ggml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace attnguard::examples {
namespace {

constexpr std::array<std::string_view, 5> kNames = {
    "none", "mask-bit", "stale-page", "scale", "nan"};

constexpr std::int64_t kPage = 4;  // cells

// The nodes that attention begins with: their inputs are what is spoilt.
bool begins_attention(const ggml_tensor* node) {
  return node->op == GGML_OP_FLASH_ATTN_EXT ||
         (node->op == GGML_OP_SOFT_MAX &&
          std::string_view(node->name).starts_with("kq_soft_max"));
}

bool ends_attention(const ggml_tensor* node) {
  return node->op == GGML_OP_FLASH_ATTN_EXT ||
         (node->op == GGML_OP_MUL_MAT &&
          std::string_view(node->src[1]->name).starts_with("kq_soft_max"));
}

// The key's view of the cache.
ggml_tensor* key_of(ggml_tensor* node) {
  if (node->op == GGML_OP_FLASH_ATTN_EXT) return node->src[1];
  ggml_tensor* scores = node->src[0];
  while (scores->op != GGML_OP_MUL_MAT) scores = scores->src[0];
  return scores->src[0];
}

ggml_tensor* mask_of(ggml_tensor* node) {
  return node->op == GGML_OP_FLASH_ATTN_EXT ? node->src[3] : node->src[1];
}

int number_behind(std::string_view name, std::string_view prefix) {
  const std::size_t at = name.find(prefix);
  if (at == name.npos) return -1;
  return std::atoi(name.data() + at + prefix.size());
}

float element(const ggml_tensor* mask, std::int64_t index) {
  if (mask->type == GGML_TYPE_F32)
    return static_cast<const float*>(mask->data)[index];
  return ggml_fp16_to_fp32(static_cast<const ggml_fp16_t*>(mask->data)[index]);
}

void show(ggml_tensor* mask, std::int64_t index) {
  if (mask->type == GGML_TYPE_F32)
    static_cast<float*>(mask->data)[index] = 0;
  else
    static_cast<ggml_fp16_t*>(mask->data)[index] = ggml_fp32_to_fp16(0);
}

// The first cell that a row must not see and the next row sees: its next token.
std::string flip_mask(ggml_tensor* mask) {
  const std::int64_t cells = mask->ne[0], rows = mask->ne[1];
  for (std::int64_t row = 0; row + 1 < rows; ++row)
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      const std::int64_t index = row * cells + cell;
      if (std::isfinite(element(mask, index)) ||
          !std::isfinite(element(mask, index + cells)))
        continue;
      show(mask, index);
      return "row " + std::to_string(row) + " of the ubatch was shown cell " +
             std::to_string(cell);
    }
  return {};
}

// Cells 4 to 7 of the key's cache get what cells 0 to 3 hold.
std::string make_stale(ggml_tensor* key) {
  ggml_tensor* cache = key->view_src != nullptr ? key->view_src : key;
  auto* data = static_cast<std::byte*>(cache->data);
  const std::size_t page = static_cast<std::size_t>(kPage) * cache->nb[1];
  if (cache->ne[1] < 2 * kPage) return {};
  std::memcpy(data + page, data, page);
  return "cells 4 to 7 of the key cache hold what cells 0 to 3 hold";
}

}  // namespace

std::span<const std::string_view> fault_names() { return kNames; }

Fault find_fault(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  return at == kNames.end() ? Fault::kNone
                            : static_cast<Fault>(at - kNames.begin());
}

bool Corruption::is_target(const ggml_tensor* node) {
  if (node->op == GGML_OP_FLASH_ATTN_EXT) {
    const ggml_tensor* root = node->src[1]->view_src;
    return root != nullptr && number_behind(root->name, "cache_k_l") == layer_;
  }
  const ggml_tensor* softmax =
      node->op == GGML_OP_SOFT_MAX ? node : node->src[1];
  return number_behind(softmax->name, "kq_soft_max-") == layer_;
}

void Corruption::spoil_inputs(ggml_tensor* node) {
  std::string what;
  if (fault_ == Fault::kMaskBit && mask_of(node) != nullptr)
    what = flip_mask(mask_of(node));
  if (fault_ == Fault::kStalePage && done_.empty())
    what = make_stale(key_of(node));
  if (fault_ == Fault::kScale) {
    if (scale_ == 0) std::memcpy(&scale_, node->op_params, sizeof scale_);
    const float wrong = scale_ * 1.25f;
    std::memcpy(node->op_params, &wrong, sizeof wrong);
    what = "scores are multiplied with 1.25 times the scale";
  }
  if (done_.empty() && !what.empty())
    done_ = "layer " + std::to_string(layer_) + ", graph " +
            std::to_string(graph_) + ": " + what;
}

bool Corruption::ask(ggml_tensor* node) {
  if (fault_ == Fault::kNone) return false;
  if (begins_attention(node) && is_target(node)) {
    ++graph_;
    if (graph_ >= first_graph_) spoil_inputs(node);
  }
  return fault_ == Fault::kNan && ends_attention(node) && is_target(node);
}

void Corruption::computed(ggml_tensor* node) {
  if (fault_ != Fault::kNan || !ends_attention(node) || !is_target(node) ||
      graph_ < first_graph_)
    return;
  static_cast<float*>(node->data)[1] = std::numeric_limits<float>::quiet_NaN();
  if (done_.empty())
    done_ = "layer " + std::to_string(layer_) + ", graph " +
            std::to_string(graph_) + ": one element of the output is NaN";
}

}  // namespace attnguard::examples
