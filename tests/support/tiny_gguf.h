// Tiny GGUF models with random weights, for tests of whole models: a few
// hundred kB, written in milliseconds, of the architectures that differ in what
// their attention does.
//
// The files are written by hand (GGUF version 3), so that no engine is needed
// to make one, nor to make a damaged one.
#ifndef ATTNGUARD_TESTS_SUPPORT_TINY_GGUF_H_
#define ATTNGUARD_TESTS_SUPPORT_TINY_GGUF_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "guard/base/status.h"

namespace attnguard {

struct TinyGguf {
  std::string_view name;          // Of this entry: "llama-tied"
  std::string_view architecture;  // As GGUF and llama.cpp call it: "llama"
  bool tied = false;         // No output.weight: the embedding is used again.
  bool biases = false;       // On the projections of q, k and v.
  bool post_norms = false;   // A norm behind attention and feed-forward, too.
  bool qk_norms = false;     // A norm on each head's query and key.
  std::uint32_t window = 0;  // Every second layer sees so many tokens; 0: all.
  float softcap = 0;         // On attention scores and logits; 0: none.
  std::uint32_t kv_heads = 2;

  // The same for all unless a test says otherwise.
  std::uint32_t heads = 4;
  std::uint32_t head_dim = 16;
  std::uint32_t layers = 2;
  std::uint32_t feed_forward = 128;
  std::uint32_t vocab_size = 96;
  std::uint32_t context_length = 256;
  double sigma = 0.2;  // Of weights; below 0.1 the softmax is nearly flat.

  std::uint32_t width() const { return heads * head_dim; }
};

// llama (grouped heads), llama-tied, llama-mqa (one KV head), llama-mha, qwen2
// (biases), gemma2 (windows, soft-caps), gemma3 (windows, norms on q and k).
std::span<const TinyGguf> tiny_ggufs();

// The entry of that name; aborts if there is none, as only tests ask.
const TinyGguf& tiny_gguf(std::string_view name);

// Writes the model; the same seed gives the same bytes.
Status write_tiny_gguf(const TinyGguf& model, std::uint64_t seed,
                       const std::string& path);

// The same as bytes, for tests that damage them.
std::string tiny_gguf_bytes(const TinyGguf& model, std::uint64_t seed);

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_TINY_GGUF_H_
