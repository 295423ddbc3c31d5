// The attention kernel under test: a callback and what it says of itself.
//
// To guard your own kernel, write a function that takes an AttentionCall,
// computes call.problem with the given tensors and returns a Status; give it a
// name and the capabilities that differ from the defaults. A callback that
// throws is caught and reported as an engine error.
#ifndef ATTNGUARD_GUARD_ENGINE_ENGINE_H_
#define ATTNGUARD_GUARD_ENGINE_ENGINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "guard/base/dtype.h"
#include "guard/base/status.h"
#include "guard/base/tensor_view.h"
#include "guard/engine/memory.h"
#include "guard/problem/problem.h"

namespace attnguard {

// One attention call. Axes of every view: [batch, head, position, channel];
// positions past an entry's own length are padding. Inputs are read only.
struct AttentionCall {
  const Problem* problem = nullptr;
  ConstTensorView query;  // [batch, num_heads,    max seq_len_q,  head_dim_qk]
  ConstTensorView key;    // [batch, num_kv_heads, max seq_len_kv, head_dim_qk]
  ConstTensorView value;  // [batch, num_kv_heads, max seq_len_kv, head_dim_v]
  TensorView output;      // [batch, num_heads,    max seq_len_q,  head_dim_v]
};

using AttentionCallback = std::function<Status(const AttentionCall&)>;

// How the engine rounds on one problem. The planner and the bounds use it; an
// engine that claims more precision than it has gets false alarms, one that
// claims less gets wider bounds.
struct Numerics {
  Dtype score = Dtype::kFp32;        // Scores are held in this type.
  Dtype probability = Dtype::kFp32;  // Softmax weights, before the product.
  Dtype accumulator = Dtype::kFp32;  // Sums over keys and channels.
  double max_input = 0;              // Larger |q|, |k|, |v| overflow inside the
                                     // engine; 0: only the dtype's own limit.
  double key_error = 0;    // Relative error of a stored key within its block
  double value_error = 0;  // (0: stored exactly; block-quantised: > 0).

  // The largest input that reaches the kernel unharmed.
  double largest_input(Dtype dtype) const {
    const double own = dtype_info(dtype).max_finite;
    return max_input > 0 && max_input < own ? max_input : own;
  }
};

// fp64 problems compute in fp64, all others in fp32 with weights in fp32.
Numerics default_numerics(const Problem& problem);

struct Capabilities {
  // Input dtypes that the engine takes.
  std::vector<Dtype> dtypes = {Dtype::kFp64, Dtype::kFp32, Dtype::kFp16,
                               Dtype::kBf16};

  // Same inputs, same bits. false: the noise floor is measured by repeats.
  bool deterministic = true;

  // How it rounds on a problem; default_numerics when absent.
  std::function<Numerics(const Problem&)> numerics;

  // Why the engine cannot run a problem, or empty when it can. Called only
  // for dtypes listed above.
  std::function<std::string(const Problem&)> unsupported;
};

struct Engine {
  std::string name;         // "builtin:tiled"; what policies match by glob.
  std::string description;  // One line.
  Capabilities capabilities;
  AttentionCallback run;
  std::shared_ptr<Memory> memory;  // nullptr: host_memory().
};

// Empty when the engine takes the problem, otherwise the reason.
std::string unsupported_reason(const Engine& engine, const Problem& problem);

Numerics numerics_of(const Engine& engine, const Problem& problem);

// Runs the callback; anything it throws becomes kEngineFailure.
Status run_engine(const Engine& engine, const AttentionCall& call);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_ENGINE_H_
