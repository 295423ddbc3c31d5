// Attention in a graph, written as plain operators or as one fused node.
#ifndef ATTNGUARD_CI_LINT_ATTENTION_H_
#define ATTNGUARD_CI_LINT_ATTENTION_H_

#include "ci/lint/evaluate.h"

namespace attnguard::lint {

// Axes are counted from the end: -1 is the last one. 0: not known.
struct Axes {
  int query = 0;
  int key = 0;
};

// An operator between the scores and the weighted sum, and by which of its
// inputs the scores (or weights) come.
struct Step {
  const Node* node = nullptr;
  std::size_t operand = 0;
  Axes axes;  // Of the node's output.
};

struct Attention {
  const Node* node = nullptr;  // The Softmax, or the fused node.
  bool fused = false;

  // Of plain operators only. Steps stand in the order of the computation.
  const Node* scores = nullptr;  // query * key^T
  const Node* output = nullptr;  // weights * value
  std::vector<Step> before;      // Between scores and Softmax.
  std::vector<Step> after;       // Between Softmax and output.
  Axes axes;                     // Of the Softmax's input and output.

  // A Reshape stands between Softmax and output: axes may be others.
  bool reshaped = false;

  std::string query, key;  // Operands of the scores; "" where not known.
};

std::vector<Attention> find_attention(const Model& model);

// Where the sequence of a query or key comes from: the values that go into
// its projection, or the graph's inputs.
std::set<std::string> sequence_roots(const Graph& graph,
                                     const std::string& value);

// Query and key come from one sequence. False for cross-attention, and where
// neither has a source that we can name.
bool is_self_attention(const Attention& attention);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_ATTENTION_H_
