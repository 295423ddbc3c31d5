// Faults put into llama.cpp's graph on purpose, before the guard sees it: what
// a broken kernel, a race or a bad page would do.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_EXAMPLES_CORRUPTION_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_EXAMPLES_CORRUPTION_H_

#include <span>
#include <string>
#include <string_view>

struct ggml_tensor;

namespace attnguard::examples {

enum class Fault {
  kNone,
  kMaskBit,    // One element of the mask shows a row its next token.
  kStalePage,  // Four cells of keys and values hold what others held.
  kScale,      // Scores are multiplied with 1.25 times the scale.
  kNan,        // One element of the output is NaN.
};

std::span<const std::string_view> fault_names();  // "none", "mask-bit", ...
Fault find_fault(std::string_view name);          // One of fault_names().

// A stage of cb_eval in front of the guard's. Puts the fault into the attention
// of one layer, from graph number `first_graph` on.
class Corruption {
 public:
  Corruption(Fault fault, int layer, int first_graph)
      : fault_(fault), layer_(layer), first_graph_(first_graph) {}

  // The two halves of cb_eval. ask: whether it must see the node computed.
  bool ask(ggml_tensor* node);
  void computed(ggml_tensor* node);

  Fault fault() const { return fault_; }

  // What was done; empty: nothing yet.
  const std::string& done() const { return done_; }

 private:
  bool is_target(const ggml_tensor* node);
  void spoil_inputs(ggml_tensor* node);

  Fault fault_;
  int layer_;
  int first_graph_;
  int graph_ = -1;
  float scale_ = 0;  // of the node before it was spoilt
  std::string done_;
};

}  // namespace attnguard::examples

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_EXAMPLES_CORRUPTION_H_
