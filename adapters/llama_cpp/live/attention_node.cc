#include "adapters/llama_cpp/live/attention_node.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <charconv>
#include <cstring>

namespace attnguard::llama_cpp {
namespace {

const ggml_tensor* root_of(const ggml_tensor* tensor) {
  return tensor->view_src != nullptr ? tensor->view_src : tensor;
}

bool named(const ggml_tensor* tensor, std::string_view prefix) {
  return std::string_view(tensor->name).starts_with(prefix);
}

// The decimal number behind the prefix.
int number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return -1;
  int number = -1;
  const char* first = name.data() + prefix.size();
  const auto [end, error] =
      std::from_chars(first, name.data() + name.size(), number);
  return error == std::errc() && end != first && number >= 0 ? number : -1;
}

// axes[i]: ggml's axis of logical axis i.
Place place(const ggml_tensor* tensor, const int (&axes)[4]) {
  Place result;
  result.data = static_cast<const std::byte*>(tensor->data);
  result.type = tensor->type;
  for (int i = 0; i < 4; ++i) {
    result.shape[i] = tensor->ne[axes[i]];
    result.bytes[i] = static_cast<std::int64_t>(tensor->nb[axes[i]]);
  }
  return result;
}

constexpr int kRowsByHead[4] = {3, 2, 1, 0};  // [channel, row, head, stream]
constexpr int kHeadsByRow[4] = {3, 1, 2, 0};  // [channel, head, row, stream]
constexpr int kTransposed[4] = {3, 2, 0, 1};  // [row, channel, head, stream]

float parameter(const ggml_tensor* node, int index) {
  float value = 0;
  std::memcpy(&value, node->op_params + index, sizeof value);
  return value;
}

bool is_tanh(const ggml_tensor* node) {
  return node->op == GGML_OP_UNARY &&
         node->op_params[0] == static_cast<std::int32_t>(GGML_UNARY_OP_TANH);
}

bool is_plain_scale(const ggml_tensor* node) {
  return node->op == GGML_OP_SCALE && parameter(node, 1) == 0;
}

struct Scores {
  const ggml_tensor* product = nullptr;  // of key and query; nullptr: unknown
  double softcap = 0;
};

// The product below a softmax, through scale, tanh, scale where there is a
// soft-cap.
Scores scores_of(const ggml_tensor* softmax) {
  Scores scores;
  const ggml_tensor* node = softmax->src[0];
  if (is_plain_scale(node) && is_tanh(node->src[0]) &&
      is_plain_scale(node->src[0]->src[0])) {
    const ggml_tensor* inner = node->src[0]->src[0];
    scores.softcap = parameter(node, 0);
    // Only cap * tanh(score / cap) is one.
    const double product = scores.softcap * parameter(inner, 0);
    if (product < 0.9999 || product > 1.0001) return scores;
    node = inner->src[0];
  }
  if (node->op == GGML_OP_MUL_MAT) scores.product = node;
  return scores;
}

void describe_cache(const ggml_tensor* key, AttentionNode& node) {
  const ggml_tensor* root = root_of(key);
  node.layer = number_after(root->name, "cache_k_l");
  if (node.layer < 0) return;
  node.cells_per_stream = root->ne[1];
  node.cache_streams = root->ne[2];
  const auto stream_bytes = static_cast<std::int64_t>(root->nb[2]);
  if (root->ne[2] > 1 && stream_bytes > 0)
    node.first_stream = (static_cast<const std::byte*>(key->data) -
                         static_cast<const std::byte*>(root->data)) /
                        stream_bytes;
}

void describe_flash(const ggml_tensor* tensor, AttentionNode& node) {
  node.flash = true;
  node.query = place(tensor->src[0], kRowsByHead);
  node.key = place(tensor->src[1], kRowsByHead);
  node.value = place(tensor->src[2], kRowsByHead);
  node.output = place(tensor, kHeadsByRow);
  if (tensor->src[3] != nullptr) node.mask = place(tensor->src[3], kRowsByHead);
  node.scale = parameter(tensor, 0);
  node.max_bias = parameter(tensor, 1);
  node.softcap = parameter(tensor, 2);
  if (tensor->src[4] != nullptr)
    node.sinks = static_cast<const float*>(tensor->src[4]->data);
  describe_cache(tensor->src[1], node);
}

void describe_softmax(const ggml_tensor* tensor, AttentionNode& node) {
  const ggml_tensor* softmax = tensor->src[1];
  node.output = place(tensor, kRowsByHead);
  node.weights = place(softmax, kRowsByHead);
  node.value = place(tensor->src[0], kTransposed);
  if (softmax->src[1] != nullptr)
    node.mask = place(softmax->src[1], kRowsByHead);
  node.scale = parameter(softmax, 0);
  node.max_bias = parameter(softmax, 1);
  if (softmax->src[2] != nullptr)
    node.sinks = static_cast<const float*>(softmax->src[2]->data);
  const Scores scores = scores_of(softmax);
  if (scores.product == nullptr) {
    node.problem = "the scores are bent in a way that is not known here";
    return;
  }
  node.softcap = scores.softcap;
  // There the scale comes behind the cap, which the guard has before it.
  if (node.softcap != 0 && node.scale != 1)
    node.problem = "a scale behind the soft-cap";
  node.key = place(scores.product->src[0], kRowsByHead);
  node.query = place(scores.product->src[1], kRowsByHead);
  describe_cache(scores.product->src[0], node);
}

}  // namespace

std::optional<Dtype> Place::dtype() const {
  switch (type) {
    case GGML_TYPE_F32:
      return Dtype::kFp32;
    case GGML_TYPE_F16:
      return Dtype::kFp16;
    case GGML_TYPE_BF16:
      return Dtype::kBf16;
    default:
      return std::nullopt;
  }
}

NodeKind kind_of(const ggml_tensor* node) {
  switch (node->op) {
    case GGML_OP_FLASH_ATTN_EXT:
      return NodeKind::kAttention;
    case GGML_OP_SOFT_MAX:
      return named(node, "kq_soft_max") ? NodeKind::kSoftmax : NodeKind::kOther;
    case GGML_OP_MUL_MAT:
      return node->src[1]->op == GGML_OP_SOFT_MAX &&
                     named(node->src[1], "kq_soft_max")
                 ? NodeKind::kAttention
                 : NodeKind::kOther;
    case GGML_OP_SET_ROWS:
      if (named(root_of(node), "cache_k_l")) return NodeKind::kWriteKey;
      if (named(root_of(node), "cache_v_l")) return NodeKind::kWriteValue;
      return NodeKind::kOther;
    default:
      return NodeKind::kOther;
  }
}

int layer_of(const ggml_tensor* node) {
  switch (kind_of(node)) {
    case NodeKind::kWriteKey:
      return number_after(root_of(node)->name, "cache_k_l");
    case NodeKind::kWriteValue:
      return number_after(root_of(node)->name, "cache_v_l");
    case NodeKind::kSoftmax:
      return number_after(node->name, "kq_soft_max-");
    case NodeKind::kAttention:
      if (node->op == GGML_OP_MUL_MAT)
        return number_after(node->src[1]->name, "kq_soft_max-");
      return number_after(root_of(node->src[1])->name, "cache_k_l");
    case NodeKind::kOther:
      break;
  }
  return -1;
}

AttentionNode describe(const ggml_tensor* tensor) {
  AttentionNode node;
  if (tensor->op == GGML_OP_FLASH_ATTN_EXT)
    describe_flash(tensor, node);
  else
    describe_softmax(tensor, node);
  if (node.layer < 0) node.layer = layer_of(tensor);
  for (const ggml_tensor* source : tensor->src)
    if (source != nullptr && !on_host(source))
      node.problem = "the tensors lie where the host cannot read";
  return node;
}

Place query_of_softmax(const ggml_tensor* softmax) {
  const Scores scores = scores_of(softmax);
  if (scores.product == nullptr || !on_host(scores.product->src[1])) return {};
  return place(scores.product->src[1], kRowsByHead);
}

bool read_write(const ggml_tensor* node, CacheWrite& write) {
  const ggml_tensor* from = node->src[0];
  const ggml_tensor* index = node->src[1];
  if (!on_host(from) || !on_host(index) || !on_host(node)) return false;
  write.from = place(from, kRowsByHead);
  write.to = place(node, kRowsByHead);
  write.index.resize(static_cast<std::size_t>(index->ne[0]));
  for (std::int64_t i = 0; i < index->ne[0]; ++i) {
    const auto* at = static_cast<const std::byte*>(index->data) +
                     i * static_cast<std::int64_t>(index->nb[0]);
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (index->type == GGML_TYPE_I64) {
      std::memcpy(&wide, at, sizeof wide);
    } else {
      std::memcpy(&narrow, at, sizeof narrow);
      wide = narrow;
    }
    if (wide < 0 || wide >= write.to.shape[2]) return false;
    write.index[static_cast<std::size_t>(i)] = wide;
  }
  return write.from.shape[2] == index->ne[0];
}

CacheShape cache_shape(const ggml_tensor* node) {
  const ggml_tensor* root = root_of(node);
  return {root->ne[1], root->ne[2]};
}

const void* index_tensor(const ggml_tensor* node) { return node->src[1]; }

bool on_host(const ggml_tensor* tensor) {
  const ggml_tensor* root = root_of(tensor);
  ggml_backend_buffer* buffer =
      tensor->buffer != nullptr ? tensor->buffer : root->buffer;
  return tensor->data != nullptr && buffer != nullptr &&
         ggml_backend_buffer_is_host(buffer);
}

void decode_row(int type, const std::byte* from, std::int64_t count,
                float* to) {
  if (type == GGML_TYPE_F32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  ggml_get_type_traits(static_cast<ggml_type>(type))->to_float(from, to, count);
}

}  // namespace attnguard::llama_cpp
