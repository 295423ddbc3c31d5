#include "tests/support/tiny_gguf.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

static_assert(std::endian::native == std::endian::little,
              "GGUF is little-endian");

constexpr std::array<TinyGguf, 7> kModels = {{
    {.name = "llama", .architecture = "llama"},
    {.name = "llama-tied", .architecture = "llama", .tied = true},
    {.name = "llama-mqa", .architecture = "llama", .kv_heads = 1},
    {.name = "llama-mha", .architecture = "llama", .kv_heads = 4},
    {.name = "qwen2", .architecture = "qwen2", .tied = true, .biases = true},
    {.name = "gemma2",
     .architecture = "gemma2",
     .tied = true,
     .post_norms = true,
     .window = 12,
     .softcap = 20},
    {.name = "gemma3",
     .architecture = "gemma3",
     .tied = true,
     .post_norms = true,
     .qk_norms = true,
     .window = 12},
}};

// Of enum gguf_type and enum ggml_type.
constexpr std::uint32_t kUint32 = 4, kFloat32 = 6, kString = 8;
constexpr std::uint32_t kTensorF32 = 0;
constexpr std::size_t kAlignment = 32;

class GgufWriter {
 public:
  explicit GgufWriter(std::uint64_t seed) : seed_(seed) {}

  void set(const std::string& key, std::uint32_t value) {
    begin_key(key, kUint32);
    append(keys_, value);
  }
  void set(const std::string& key, float value) {
    begin_key(key, kFloat32);
    append(keys_, value);
  }
  void set(const std::string& key, std::string_view value) {
    begin_key(key, kString);
    append_text(keys_, value);
  }

  // Weights mean + sigma * noise; `shape` begins with the contiguous axis.
  void tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
              double mean, double sigma) {
    append_text(tensors_, name);
    append(tensors_, static_cast<std::uint32_t>(shape.size()));
    std::uint64_t count = 1;
    for (const std::uint64_t size : shape) {
      append(tensors_, size);
      count *= size;
    }
    append(tensors_, kTensorF32);
    append(tensors_, static_cast<std::uint64_t>(data_.size()));
    const std::uint64_t stream = derive_seed(seed_, num_tensors_++);
    for (std::uint64_t i = 0; i < count; ++i)
      append(data_, static_cast<float>(
                        mean + sigma * near_normal(derive_seed(stream, i))));
    pad(data_);
  }

  std::string bytes() const {
    std::string out = "GGUF";
    append(out, std::uint32_t{3});
    append(out, num_tensors_);
    append(out, num_keys_);
    out += keys_ + tensors_;
    pad(out);
    return out + data_;
  }

 private:
  template <typename T>
  static void append(std::string& to, T value) {
    std::array<char, sizeof value> raw;
    std::memcpy(raw.data(), &value, sizeof value);
    to.append(raw.data(), raw.size());
  }
  static void append_text(std::string& to, std::string_view text) {
    append(to, static_cast<std::uint64_t>(text.size()));
    to += text;
  }
  static void pad(std::string& text) {
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  void begin_key(const std::string& key, std::uint32_t type) {
    append_text(keys_, key);
    append(keys_, type);
    ++num_keys_;
  }

  std::uint64_t seed_;
  std::uint64_t num_keys_ = 0;
  std::uint64_t num_tensors_ = 0;
  std::string keys_, tensors_, data_;
};

void write_keys(const TinyGguf& m, GgufWriter& to) {
  const std::string arch(m.architecture);
  to.set("general.architecture", m.architecture);
  to.set("general.name", m.name);
  to.set(arch + ".vocab_size", m.vocab_size);
  to.set(arch + ".context_length", m.context_length);
  to.set(arch + ".embedding_length", m.width());
  to.set(arch + ".block_count", m.layers);
  to.set(arch + ".feed_forward_length", m.feed_forward);
  to.set(arch + ".attention.head_count", m.heads);
  to.set(arch + ".attention.head_count_kv", m.kv_heads);
  to.set(arch + ".attention.key_length", m.head_dim);
  to.set(arch + ".attention.value_length", m.head_dim);
  to.set(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  to.set(arch + ".rope.dimension_count", m.head_dim);
  if (m.window > 0) {
    to.set(arch + ".attention.sliding_window", m.window);
    to.set(arch + ".attention.sliding_window_pattern", std::uint32_t{2});
  }
  if (m.softcap > 0) {
    to.set(arch + ".attn_logit_softcapping", m.softcap);
    to.set(arch + ".final_logit_softcapping", m.softcap);
  }
  to.set("tokenizer.ggml.model", "no_vocab");
}

void write_layer(const TinyGguf& m, std::uint32_t layer, GgufWriter& to) {
  const std::string at = "blk." + std::to_string(layer) + ".";
  const std::uint64_t width = m.width(), kv_width = m.kv_heads * m.head_dim;
  const auto norm = [&](const char* name, std::uint64_t size) {
    to.tensor(at + name + ".weight", {size}, 1, 0.1);
  };
  const auto matrix = [&](const char* name, std::uint64_t in,
                          std::uint64_t out) {
    to.tensor(at + name + ".weight", {in, out}, 0, m.sigma);
  };
  norm("attn_norm", width);
  matrix("attn_q", width, width);
  matrix("attn_k", width, kv_width);
  matrix("attn_v", width, kv_width);
  if (m.biases) {
    to.tensor(at + "attn_q.bias", {width}, 0, m.sigma);
    to.tensor(at + "attn_k.bias", {kv_width}, 0, m.sigma);
    to.tensor(at + "attn_v.bias", {kv_width}, 0, m.sigma);
  }
  if (m.qk_norms) {
    norm("attn_q_norm", m.head_dim);
    norm("attn_k_norm", m.head_dim);
  }
  matrix("attn_output", width, width);
  if (m.post_norms) norm("post_attention_norm", width);
  norm("ffn_norm", width);
  matrix("ffn_gate", width, m.feed_forward);
  matrix("ffn_up", width, m.feed_forward);
  matrix("ffn_down", m.feed_forward, width);
  if (m.post_norms) norm("post_ffw_norm", width);
}

}  // namespace

std::span<const TinyGguf> tiny_ggufs() { return kModels; }

const TinyGguf& tiny_gguf(std::string_view name) {
  for (const TinyGguf& model : kModels)
    if (model.name == name) return model;
  std::abort();
}

std::string tiny_gguf_bytes(const TinyGguf& model, std::uint64_t seed) {
  GgufWriter writer(seed);
  write_keys(model, writer);
  writer.tensor("token_embd.weight", {model.width(), model.vocab_size}, 0,
                model.sigma);
  for (std::uint32_t layer = 0; layer < model.layers; ++layer)
    write_layer(model, layer, writer);
  writer.tensor("output_norm.weight", {model.width()}, 1, 0.1);
  if (!model.tied)
    writer.tensor("output.weight", {model.width(), model.vocab_size}, 0,
                  model.sigma);
  return writer.bytes();
}

Status write_tiny_gguf(const TinyGguf& model, std::uint64_t seed,
                       const std::string& path) {
  const std::string bytes = tiny_gguf_bytes(model, seed);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return ok_status();
  return {StatusCode::kIo, "cannot write " + path};
}

}  // namespace attnguard
