// com.microsoft MultiHeadAttention: merged heads, as many for keys as for
// queries. Causal is `unidirectional`, lengths of keys are key_padding_mask,
// other masks are attention_bias with the lowest number for masked.
#include <cmath>

#include "adapters/onnxruntime/kernel_table.h"
#include "adapters/onnxruntime/tensors.h"
#include "guard/problem/empty_rows.h"

namespace attnguard::onnxruntime {
namespace {

bool is_causal(const Problem& problem) {
  return problem.mask_form == MaskForm::kImplied &&
         (mask_is(problem, "causal_bottom_right") ||
          mask_is(problem, "causal_top_left")) &&
         equal_lengths_q(problem) && equal_lengths_kv(problem) &&
         problem.max_len_q() == problem.max_len_kv();
}

bool needs_bias(const Problem& problem) {
  return problem.mask_form != MaskForm::kImplied ||
         !(mask_is(problem, "full") || is_causal(problem));
}

std::string multi_head_unsupported(const Problem& problem, int) {
  if (problem.num_heads != problem.num_kv_heads)
    return "the operator has as many heads for keys as for queries";
  if (problem.out_dtype && *problem.out_dtype != problem.dtype)
    return "the output has the inputs' type";
  if (problem.mask_form == MaskForm::kBoolean ||
      problem.mask_form == MaskForm::kInverted)
    return "attention_bias is additive";
  if (has_empty_row(problem))
    return "the operator promises nothing for a row with no allowed key";
  return {};
}

NodeCall prepare_multi_head(const AttentionCall& call, int opset) {
  const Problem& p = *call.problem;
  NodeCall node;
  node.op = "MultiHeadAttention";
  node.domain = "com.microsoft";
  node.opset = opset;
  node.attributes = {{"num_heads", p.num_heads},
                     {"scale", static_cast<float>(p.scale())},
                     {"unidirectional", std::int64_t{is_causal(p)}}};
  const std::int64_t queries = p.max_len_q(), keys = p.max_len_kv();
  node.inputs = {
      gather("query", call.query, lengths_q(p), 0, queries, Form::kMerged),
      gather("key", call.key, lengths_kv(p), 0, keys, Form::kMerged),
      gather("value", call.value, lengths_kv(p), 0, keys, Form::kMerged)};
  if (needs_bias(p)) {
    node.inputs.insert(node.inputs.end(), 2, NodeTensor{});
    const double masked = p.mask_form == MaskForm::kAdditive
                              ? -HUGE_VAL
                              : -dtype_info(p.dtype).max_finite;
    node.inputs.push_back(additive_mask("attention_bias", call, masked));
  } else if (!equal_lengths_kv(p)) {
    node.inputs.push_back({});  // No bias of the projections.
    std::vector<std::int32_t> lengths;
    for (std::int64_t length : lengths_kv(p))
      lengths.push_back(static_cast<std::int32_t>(length));
    node.inputs.push_back(
        integer_tensor("key_padding_mask", kInt32, lengths, {p.batch}));
  }
  node.outputs = {result_tensor("output", p.dtype, p.batch, p.num_heads,
                                queries, p.head_dim_v, Form::kMerged)};
  return node;
}

}  // namespace

const Kernel kMultiHeadAttention = {
    .name = "multi_head_attention",
    .summary = "com.microsoft MultiHeadAttention on the CPU",
    .dtypes = [] { return std::vector<Dtype>{Dtype::kFp32}; },
    .features =
        [] {
          return std::vector<Feature>{Feature::kMaskTensor,
                                      Feature::kValueInKey, Feature::kPacked,
                                      Feature::kPaged};
        },
    .opsets = {23},
    .unsupported = multi_head_unsupported,
    .numerics = usual_numerics,
    .prepare = prepare_multi_head,
    .finish = finish_merged,
};

}  // namespace attnguard::onnxruntime
