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
#include <string_view>
#include <vector>

#include "guard/base/dtype.h"
#include "guard/base/status.h"
#include "guard/base/tensor_view.h"
#include "guard/engine/memory.h"
#include "guard/problem/placement.h"
#include "guard/problem/problem.h"

namespace attnguard {

// A mask that is given as a tensor: which key each query may attend to, for
// all heads alike. Dense: [batch, max seq_len_q, max seq_len_kv]. Bytes for
// kBoolean and kInverted, elements of the inputs' dtype for kAdditive; in the
// engine's memory. data is nullptr for kImplied.
struct MaskTensor {
  MaskForm form = MaskForm::kImplied;
  const std::byte* data = nullptr;
};

// One attention call. Axes of every view: [batch, head, position, channel];
// positions past an entry's own length are padding. Inputs are read only.
// view.at(batch, head, position) finds a token on every layout.
struct AttentionCall {
  const Problem* problem = nullptr;
  ConstTensorView query;  // [batch, num_heads,    max seq_len_q,  head_dim_qk]
  ConstTensorView key;    // [batch, num_kv_heads, max seq_len_kv, head_dim_qk]
  ConstTensorView value;  // [batch, num_kv_heads, max seq_len_kv, head_dim_v]
  TensorView output;      // [batch, num_heads,    max seq_len_q,  head_dim_v]

  MaskTensor mask;

  // What packed problems come with: [batch + 1], in host memory; else nullptr.
  const std::int32_t* cu_seqlens_q = nullptr;
  const std::int32_t* cu_seqlens_kv = nullptr;

  // What paged problems come with: [batch, block_table_width] block ids, in
  // host memory; else nullptr. Ids past a sequence's last block are valid and
  // belong to nobody.
  const std::int32_t* block_table = nullptr;
  std::int64_t block_table_width = 0;

  // Asked for when data is not nullptr, and only of engines that have the
  // feature; fp64 for fp64 problems, otherwise fp32.
  //   softmax_lse [batch, num_heads, max seq_len_q, 1]: log sum_j exp(s_j),
  //     natural logarithm, the sink included; -inf for rows without any.
  //   weights [batch, num_heads, max seq_len_q, max seq_len_kv]: the softmax
  //     weights, 0 at keys that are not allowed.
  TensorView softmax_lse;
  TensorView weights;
};

// Appends tokens to a cache: row `position` of new_key and new_value of entry
// b becomes token seq_len_kv - num_new + position of the cache. The problem is
// that of the whole cache, after the append.
struct CacheAppend {
  const Problem* problem = nullptr;
  std::int64_t num_new = 0;   // tokens of each entry
  ConstTensorView new_key;    // [batch, num_kv_heads, num_new, head_dim_qk]
  ConstTensorView new_value;  // [batch, num_kv_heads, num_new, head_dim_v]
  TensorView key;             // the cache, as in AttentionCall
  TensorView value;
  const std::int32_t* cu_seqlens_kv = nullptr;
  const std::int32_t* block_table = nullptr;
  std::int64_t block_table_width = 0;
};

using AttentionCallback = std::function<Status(const AttentionCall&)>;
using AppendCallback = std::function<Status(const CacheAppend&)>;

// What an engine must say it can do before it is asked to: an engine that has
// never heard of sinks would otherwise be called wrong for leaving them out.
enum class Feature {
  kSoftcap,     // Problem::softcap
  kAlibi,       // Problem::alibi_max_bias
  kSinks,       // Problem::sinks
  kMaskTensor,  // Problem::mask_form other than implied
  kValueInKey,  // Problem::value_in_key
  kPacked,      // Problem::packed
  kPaged,       // Problem::block_size
  kLse,         // AttentionCall::softmax_lse
  kWeights,     // AttentionCall::weights
};

std::string_view feature_name(Feature feature);  // "softcap"

// Every feature that an engine which reads tensors through the views alone
// has, or can have: all but the outputs.
std::vector<Feature> all_input_features();

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

  std::vector<Feature> features;

  bool has(Feature feature) const;

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
  AppendCallback append;           // Empty: the engine has no cache of its own.
  std::shared_ptr<Memory> memory;  // nullptr: host_memory().
};

// Empty when the engine takes the problem, otherwise the reason.
std::string unsupported_reason(const Engine& engine, const Problem& problem);

Numerics numerics_of(const Engine& engine, const Problem& problem);

// Runs a callback; anything it throws becomes kEngineFailure.
Status run_engine(const Engine& engine, const AttentionCall& call);
Status run_append(const Engine& engine, const CacheAppend& append);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_ENGINE_H_
