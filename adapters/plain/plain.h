// Your attention function on raw arrays, as an engine, in five lines:
//
//   void my_attention(const float* query, const float* key,
//                     const float* value, float* output, ...);  // yours
//
//   PlainOptions options;
//   options.masks = {"causal_bottom_right"};
//   Engine engine = plain_fp32_engine("my_attention", options, my_attention);
//
// The options say what the function can do; every default is the smallest
// claim. A problem outside the claim is reported as unsupported with the
// reason, never run on a guess.
//
// Axes and their sizes, whatever the order in memory:
//   query  [batch, num_heads,    seq_len_q,  head_dim_qk]
//   key    [batch, num_kv_heads, seq_len_kv, head_dim_qk]
//   value  [batch, num_kv_heads, seq_len_kv, head_dim_v]
//   output [batch, num_heads,    seq_len_q,  head_dim_v]
#ifndef ATTNGUARD_ADAPTERS_PLAIN_PLAIN_H_
#define ATTNGUARD_ADAPTERS_PLAIN_PLAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/problem/problem.h"

namespace attnguard {

struct PlainOptions {
  // Element types the function takes; the output has the same type unless
  // `any_out_dtype`.
  std::vector<Dtype> dtypes = {Dtype::kFp32};
  bool any_out_dtype = false;

  // The order of the axes that the function expects, without gaps. nullopt: it
  // honours the strides that it is given, whatever they are.
  std::optional<Layout> layout = Layout::kBhsd;

  // What happens when a problem's strides are not that layout's. false: the
  // problem is unsupported. true: the tensors are copied into the layout and
  // the result is copied back. Copying makes every layout run, and hides
  // faults of stride handling: leave it off where strides are your business.
  bool repack = false;

  // The masks it implements, as in a problem's text. A problem's mask fits
  // when it allows the same keys in every row as one of these: with equal
  // lengths "causal_top_left" serves "causal_bottom_right" too. A kind without
  // its parameters, "sliding_window", stands for all their values; the
  // function reads them from the problem. "*" takes every mask.
  std::vector<std::string> masks = {"full"};

  bool grouped_heads = false;      // num_kv_heads < num_heads
  bool unequal_head_dims = false;  // head_dim_qk != head_dim_v
  bool own_lengths = false;        // batch entries of unlike lengths
  bool free_scale = true;  // false: the scale is always 1/sqrt(head_dim_qk)

  bool deterministic = true;  // same inputs, same bits

  // How it rounds; default_numerics when absent.
  std::function<Numerics(const Problem&)> numerics;

  // Further limits: why a problem cannot be run, or empty when it can. Called
  // for problems that fit everything above.
  std::function<std::string(const Problem&)> unsupported;
};

// One call on raw arrays. Strides count elements: [batch, head, position,
// channel]. Lengths are the longest of the batch; with `own_lengths` each
// entry's are problem->len_q(b) and len_kv(b). The strides inside `problem`
// are not those of repacked tensors.
struct PlainArrays {
  const void* query = nullptr;
  const void* key = nullptr;
  const void* value = nullptr;
  void* output = nullptr;
  Dtype dtype = Dtype::kFp32;
  Dtype out_dtype = Dtype::kFp32;
  std::int64_t batch = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t seq_len_q = 0;
  std::int64_t seq_len_kv = 0;
  std::int64_t head_dim_qk = 0;
  std::int64_t head_dim_v = 0;
  double softmax_scale = 1;
  Shape4 query_strides = {0, 0, 0, 0};
  Shape4 key_strides = {0, 0, 0, 0};
  Shape4 value_strides = {0, 0, 0, 0};
  Shape4 output_strides = {0, 0, 0, 0};
  const Problem* problem = nullptr;
};

using PlainFunction = std::function<void(const PlainArrays&)>;

// An engine in host memory. What the function throws becomes an engine error.
Engine plain_engine(std::string name, PlainOptions options,
                    PlainFunction function);

// The signature most kernels start from. It cannot be told strides, masks or
// lengths of single entries, so options.layout must be set, and neither
// `own_lengths` nor `any_out_dtype`; otherwise no problem is supported and the
// reason says so. options.dtypes is fp32 whatever it was.
using PlainFp32Function = std::function<void(
    const float* query, const float* key, const float* value, float* output,
    std::int64_t batch, std::int64_t num_heads, std::int64_t num_kv_heads,
    std::int64_t seq_len_q, std::int64_t seq_len_kv, std::int64_t head_dim_qk,
    std::int64_t head_dim_v, float softmax_scale)>;

Engine plain_fp32_engine(std::string name, PlainOptions options,
                         PlainFp32Function function);

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_PLAIN_H_
