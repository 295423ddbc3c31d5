// An attention operator of ONNX Runtime: how a problem becomes one node.
//
// Adding one: a file beside this that defines a Kernel, and a line in
// kernel_table.cc.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_KERNEL_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_KERNEL_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/onnxruntime/node.h"
#include "guard/engine/engine.h"

namespace attnguard::onnxruntime {

struct Kernel {
  std::string_view name;     // "attention"
  std::string_view summary;  // One line.
  std::vector<Dtype> (*dtypes)();
  std::vector<Feature> (*features)();
  std::vector<int> opsets;  // Of ai.onnx that it may run as, the default first.

  // Why the operator cannot run the problem, or empty.
  std::string (*unsupported)(const Problem& problem, int opset);

  Numerics (*numerics)(const Problem& problem);

  // The node and its tensors for a call that is supported.
  NodeCall (*prepare)(const AttentionCall& call, int opset);

  // Hands the results of a finished run to the call.
  void (*finish)(const NodeCall& node, const AttentionCall& call);
};

std::span<const Kernel* const> all_kernels();

// Whether the mask is this kind alone.
bool mask_is(const Problem& problem, std::string_view kind);

// Whether all entries have the same lengths.
bool equal_lengths_q(const Problem& problem);
bool equal_lengths_kv(const Problem& problem);

// fp16 kernels of ONNX Runtime hold scores and weights in fp16.
Numerics usual_numerics(const Problem& problem);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_KERNEL_H_
