// com.microsoft GroupQueryAttention, what decoders run: always causal, last
// query aligned with last key. All keys but the last seq_len_q are the past;
// those are the new ones, which the operator appends. sliding_window_keys is
// local_window_size, sinks=0 is smooth_softmax.
#include <algorithm>

#include "adapters/onnxruntime/kernel_table.h"
#include "adapters/onnxruntime/tensors.h"

namespace attnguard::onnxruntime {
namespace {

const MaskTerm* window_of(const Problem& problem) {
  for (const MaskTerm& term : problem.mask.terms())
    if (term.kind->name == "sliding_window_keys") return &term;
  return nullptr;
}

bool is_causal_with_window_at_most(const Problem& problem) {
  const std::size_t terms = problem.mask.terms().size();
  return problem.mask.has("causal_bottom_right") &&
         (terms == 1 || (terms == 2 && window_of(problem) != nullptr));
}

// smooth_softmax is one sink of 0 for all heads.
bool has_only_smooth_sinks(const Problem& problem) {
  return std::all_of(problem.sinks.begin(), problem.sinks.end(),
                     [](double sink) { return sink == 0; });
}

std::string group_query_unsupported(const Problem& problem, int) {
  if (!is_causal_with_window_at_most(problem))
    return "the operator is causal_bottom_right, with sliding_window_keys at "
           "most";
  if (problem.head_dim_qk != problem.head_dim_v)
    return "the operator has one head_dim";
  if (problem.head_dim_qk % 8 != 0)
    return "the operator needs head_dim to be a multiple of 8";
  if (!equal_lengths_q(problem))
    return "the operator takes as many queries of every entry";
  if (problem.max_len_q() > 1 && !equal_lengths_kv(problem))
    return "lengths differ only where seq_len_q=1";
  if (problem.max_len_q() > 1 && problem.batch > 1 &&
      problem.max_len_kv() > problem.max_len_q())
    return "several queries after a past need batch=1";
  if (problem.out_dtype && *problem.out_dtype != problem.dtype)
    return "the output has the inputs' type";
  for (std::int64_t b = 0; b < problem.batch; ++b)
    if (problem.len_kv(b) < problem.len_q(b))
      return "every query brings its own key: seq_len_kv >= seq_len_q";
  if (!has_only_smooth_sinks(problem))
    return "sinks other than 0 (smooth_softmax) are not passed on";
  return {};
}

NodeCall prepare_group_query(const AttentionCall& call, int opset) {
  const Problem& p = *call.problem;
  NodeCall node;
  node.op = "GroupQueryAttention";
  node.domain = "com.microsoft";
  node.opset = opset;
  node.attributes = {{"num_heads", p.num_heads},
                     {"kv_num_heads", p.num_kv_heads},
                     {"scale", static_cast<float>(p.scale())}};
  if (p.softcap)
    node.attributes.push_back({"softcap", static_cast<float>(*p.softcap)});
  if (const MaskTerm* window = window_of(p))
    node.attributes.push_back({"local_window_size", window->values[0]});
  if (!p.sinks.empty())
    node.attributes.push_back({"smooth_softmax", std::int64_t{1}});
  const std::int64_t queries = p.max_len_q(), keys = p.max_len_kv();
  const std::int64_t past = keys - queries;
  // New keys lie at the end of each entry's own length.
  const auto new_rows = [&](const char* name, const ConstTensorView& from) {
    NodeTensor all = gather(name, from, lengths_kv(p), 0, keys, Form::kHeads);
    const std::size_t size = dtype_size(p.dtype);
    const auto row = static_cast<std::size_t>(p.head_dim_v) * size;
    NodeTensor tensor = result_tensor(name, p.dtype, p.batch, p.num_kv_heads,
                                      queries, p.head_dim_v, Form::kMerged);
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t g = 0; g < p.num_kv_heads; ++g)
        for (std::int64_t i = 0; i < queries; ++i) {
          const std::int64_t j = p.len_kv(b) - queries + i;
          const auto from_row =
              static_cast<std::size_t>((b * p.num_kv_heads + g) * keys + j);
          const auto to_row =
              static_cast<std::size_t>((b * queries + i) * p.num_kv_heads + g);
          std::copy_n(all.bytes.begin() + static_cast<long>(from_row * row),
                      row,
                      tensor.bytes.begin() + static_cast<long>(to_row * row));
        }
    return tensor;
  };
  std::vector<std::int32_t> last;
  for (std::int64_t length : lengths_kv(p))
    last.push_back(static_cast<std::int32_t>(length - 1));
  node.inputs = {
      gather("query", call.query, lengths_q(p), 0, queries, Form::kMerged),
      new_rows("key", call.key),
      new_rows("value", call.value),
      past == 0
          ? NodeTensor{}
          : gather("past_key", call.key, lengths_kv(p), 0, past, Form::kHeads),
      past == 0 ? NodeTensor{}
                : gather("past_value", call.value, lengths_kv(p), 0, past,
                         Form::kHeads),
      integer_tensor("seqlens_k", kInt32, last, {p.batch}),
      integer_tensor("total_sequence_length", kInt32,
                     std::vector{static_cast<std::int32_t>(keys)}, {1})};
  node.outputs = {result_tensor("output", p.dtype, p.batch, p.num_heads,
                                queries, p.head_dim_v, Form::kMerged)};
  for (const char* name : {"present_key", "present_value"})
    node.outputs.push_back(result_tensor(name, p.dtype, p.batch, p.num_kv_heads,
                                         keys, p.head_dim_v, Form::kHeads));
  return node;
}

}  // namespace

const Kernel kGroupQueryAttention = {
    .name = "group_query_attention",
    .summary = "com.microsoft GroupQueryAttention on the CPU, with past keys",
    .dtypes =
        [] {
          return std::vector<Dtype>{Dtype::kFp32, Dtype::kFp16};
        },
    .features =
        [] {
          return std::vector<Feature>{Feature::kSoftcap, Feature::kSinks,
                                      Feature::kPacked, Feature::kPaged};
        },
    .opsets = {23},
    .unsupported = group_query_unsupported,
    .numerics = usual_numerics,
    .prepare = prepare_group_query,
    .finish = finish_merged,
};

}  // namespace attnguard::onnxruntime
