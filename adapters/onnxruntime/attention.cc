// ai.onnx Attention, opset 23 and 24: query, key and value with heads
// (layout=bhsd) or merged (bshd). The mask is is_causal where that says it,
// otherwise a boolean tensor, or the tensor that the problem gives; lengths
// are nonpad_kv_seqlen in opset 24 and part of the mask in opset 23.
#include <cmath>

#include "adapters/onnxruntime/kernel_table.h"
#include "adapters/onnxruntime/tensors.h"

namespace attnguard::onnxruntime {
namespace {

constexpr int kWeightsAfterSoftmax = 3;  // qk_matmul_output_mode
constexpr int kWithLengths = 24;         // First opset of nonpad_kv_seqlen

Form form_of(const Problem& problem) {
  return problem.layout == Layout::kBhsd ? Form::kHeads : Form::kMerged;
}

struct MaskChoice {
  bool causal = false;
  bool lengths = false;  // nonpad_kv_seqlen
  bool tensor = false;   // attn_mask
};

// Without lengths is_causal is aligned top-left. With them each query stands
// at the end of its own sequence.
MaskChoice choose_mask(const Problem& problem, int opset) {
  const bool equal = equal_lengths_kv(problem);
  if (problem.mask_form != MaskForm::kImplied) return {.tensor = true};
  if (mask_is(problem, "full")) {
    if (equal) return {};
    return opset >= kWithLengths ? MaskChoice{.lengths = true}
                                 : MaskChoice{.tensor = true};
  }
  const bool square = equal && equal_lengths_q(problem) &&
                      problem.max_len_q() == problem.max_len_kv();
  if (mask_is(problem, "causal_top_left") && equal) return {.causal = true};
  if (mask_is(problem, "causal_bottom_right")) {
    if (square) return {.causal = true};
    if (opset >= kWithLengths && equal_lengths_q(problem))
      return {.causal = true, .lengths = true};
  }
  return {.tensor = true};
}

std::string attention_unsupported(const Problem& problem, int) {
  if (problem.empty_row != EmptyRow::kZero)
    return "the operator gives zero for a row with no allowed key";
  if (problem.mask_form == MaskForm::kInverted)
    return "attn_mask is boolean (true: may attend) or additive";
  if (problem.out_dtype && *problem.out_dtype != problem.dtype)
    return "the output has the inputs' type";
  return {};
}

NodeTensor mask_tensor(const AttentionCall& call) {
  if (call.problem->mask_form == MaskForm::kAdditive)
    return additive_mask("attn_mask", call, -HUGE_VAL);
  return boolean_mask("attn_mask", call);
}

NodeCall prepare_attention(const AttentionCall& call, int opset) {
  const Problem& p = *call.problem;
  const Form form = form_of(p);
  const MaskChoice mask = choose_mask(p, opset);
  NodeCall node;
  node.op = "Attention";
  node.opset = opset;
  node.attributes = {{"is_causal", std::int64_t{mask.causal}},
                     {"scale", static_cast<float>(p.scale())}};
  if (p.softcap)
    node.attributes.push_back({"softcap", static_cast<float>(*p.softcap)});
  if (form == Form::kMerged) {
    node.attributes.push_back({"q_num_heads", p.num_heads});
    node.attributes.push_back({"kv_num_heads", p.num_kv_heads});
  }
  const std::int64_t queries = p.max_len_q(), keys = p.max_len_kv();
  node.inputs = {gather("Q", call.query, lengths_q(p), 0, queries, form),
                 gather("K", call.key, lengths_kv(p), 0, keys, form),
                 gather("V", call.value, lengths_kv(p), 0, keys, form)};
  if (mask.tensor || mask.lengths)
    node.inputs.push_back(mask.tensor ? mask_tensor(call) : NodeTensor{});
  if (mask.lengths) {
    node.inputs.insert(node.inputs.end(), 2, NodeTensor{});  // No past.
    node.inputs.push_back(
        integer_tensor("nonpad_kv_seqlen", kInt64, lengths_kv(p), {p.batch}));
  }
  node.outputs = {result_tensor("Y", p.dtype, p.batch, p.num_heads, queries,
                                p.head_dim_v, form)};
  if (call.weights.data != nullptr) {
    node.attributes.push_back(
        {"qk_matmul_output_mode", std::int64_t{kWeightsAfterSoftmax}});
    node.outputs.insert(node.outputs.end(), 2, NodeTensor{});
    node.outputs.push_back(result_tensor(
        "weights", p.dtype, p.batch, p.num_heads, queries, keys, Form::kHeads));
  }
  return node;
}

// Weights come in the problem's type and are asked for in another.
void convert_weights(const NodeTensor& from, const AttentionCall& call) {
  const Problem& p = *call.problem;
  const std::int64_t queries = p.max_len_q(), keys = p.max_len_kv();
  std::vector<double> row(static_cast<std::size_t>(keys));
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.num_heads; ++h)
      for (std::int64_t i = 0; i < p.len_q(b); ++i) {
        const std::int64_t first = ((b * p.num_heads + h) * queries + i) * keys;
        decode(p.dtype,
               from.bytes.data() +
                   static_cast<std::size_t>(first) * dtype_size(p.dtype),
               1, keys, row.data());
        call.weights.store_row(b, h, i, 0, keys, row.data());
      }
}

void finish_attention(const NodeCall& node, const AttentionCall& call) {
  const Problem& p = *call.problem;
  scatter(node.outputs.front(), form_of(p), lengths_q(p), p.head_dim_v,
          call.output);
  if (call.weights.data != nullptr) convert_weights(node.outputs.back(), call);
}

}  // namespace

const Kernel kAttention = {
    .name = "attention",
    .summary = "ai.onnx Attention on the CPU; opset=23 or 24",
    .dtypes =
        [] {
          return std::vector<Dtype>{Dtype::kFp32, Dtype::kFp16};
        },
    .features =
        [] {
          return std::vector<Feature>{
              Feature::kSoftcap, Feature::kMaskTensor, Feature::kValueInKey,
              Feature::kPacked,  Feature::kPaged,      Feature::kWeights};
        },
    .opsets = {23, 24},
    .unsupported = attention_unsupported,
    .numerics = usual_numerics,
    .prepare = prepare_attention,
    .finish = finish_attention,
};

}  // namespace attnguard::onnxruntime
