// A small decoder on LibTorch: grouped layers of attention and feed-forward
// with a key and value cache. It knows nothing of any guard.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_EXAMPLES_MODEL_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_EXAMPLES_MODEL_H_

#include <cstdint>
#include <string>

namespace attnguard::examples {

inline constexpr int kModelLayers = 2;

struct ModelOptions {
  int batch = 2;
  int heads = 4;
  int head_dim = 16;
  int prompt = 24;  // Tokens of the first chunk: is_causal.
  int chunk = 16;   // Of the second one: a boolean mask. 0: none.
  int steps = 12;   // Tokens that are decoded one by one: no mask.
  std::uint64_t seed = 1;
  bool half = false;  // bf16 instead of fp32
};

struct ModelResult {
  std::string failure;  // LibTorch's message; empty: it ran.
  std::int64_t tokens = 0;
  std::int64_t attention = 0;  // Calls.
  double seconds = 0;
};

ModelResult run_model(const ModelOptions& options);

// A fault in front of every guard that is started later, in each call of the
// layer from its call number `first` on. Names as in corruption_names(): of the
// mask (mask-bit), of the keys (stale-page: four of them are those of another
// page until the kernel is done, as when a page arrives too late), of the query
// (scale: 1.25 times as large), of the output (nan).
inline constexpr const char* kCorruptions[] = {"none", "mask-bit", "stale-page",
                                               "scale", "nan"};
void start_corruption(const std::string& name, int layer, int first);

// What was done; empty: nothing.
std::string corruption_done();

}  // namespace attnguard::examples

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_EXAMPLES_MODEL_H_
