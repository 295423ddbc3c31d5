#include "adapters/llama_cpp/graph.h"

#include <string>

#include "adapters/llama_cpp/mask.h"

namespace attnguard::ggml {
namespace {

constexpr std::size_t kMaxTensors = 24;  // Inputs, mask and nodes, with room.

}  // namespace

Result<std::unique_ptr<AttentionGraph>> AttentionGraph::build(
    const Library& library, Backend* backend, const Settings& settings,
    const Problem& problem) {
  std::unique_ptr<AttentionGraph> self(
      new AttentionGraph(library, settings, problem));
  const Functions& call = library.call;
  // The context holds descriptions only; the backend allocates the elements.
  const std::size_t size =
      kMaxTensors * call.tensor_overhead() + call.graph_overhead();
  self->context_ = call.init({size, nullptr, true});
  if (!self->context_)
    return Status{StatusCode::kOutOfMemory, "ggml_init returned no context"};
  self->add_inputs();
  if (settings.kernel == Kernel::kFlash)
    self->add_flash();
  else
    self->add_softmax();
  self->graph_ = call.new_graph(self->context_);
  call.build_forward_expand(self->graph_, self->result_);
  self->buffer_ = call.backend_alloc_ctx_tensors(self->context_, backend);
  if (!self->buffer_)
    return Status{StatusCode::kOutOfMemory,
                  "ggml cannot allocate the tensors of " + problem.text()};
  AttentionCall call_of_problem;
  call_of_problem.problem = &self->problem_;
  self->set_mask(call_of_problem);
  self->fill_sinks();
  return self;
}

AttentionGraph::~AttentionGraph() {
  if (buffer_) library_.call.backend_buffer_free(buffer_);
  if (context_) library_.call.free(context_);
}

void AttentionGraph::add_inputs() {
  const Functions& call = library_.call;
  const Problem& p = problem_;
  const int f32 = storage_of(Dtype::kFp32).type;
  const bool flash = settings_.kernel == Kernel::kFlash;
  query_ = call.new_tensor_4d(context_, f32, p.head_dim_qk, queries_.rows,
                              p.num_heads, queries_.streams);
  key_ = call.new_tensor_4d(context_, settings_.key_storage(p.dtype).type,
                            p.head_dim_qk, keys_.rows, p.num_kv_heads,
                            keys_.streams);
  add_value();
  if (needs_mask(p, keys_))
    mask_ = call.new_tensor_4d(
        context_, flash ? storage_of(Dtype::kFp16).type : f32, keys_.rows,
        mask_rows(queries_), 1, queries_.streams);
  if (!p.sinks.empty())
    sinks_ = call.new_tensor_4d(context_, f32, p.num_heads, 1, 1, 1);
}

bool AttentionGraph::stores_value_transposed() const {
  return settings_.kernel == Kernel::kSoftmax && !problem_.value_in_key &&
         !shares_one_stream(problem_);
}

void AttentionGraph::add_value() {
  const Functions& call = library_.call;
  const Problem& p = problem_;
  const int type = settings_.value_storage(p.dtype).type;
  if (stores_value_transposed()) {
    value_ = call.new_tensor_4d(context_, type, keys_.rows, p.head_dim_v,
                                p.num_kv_heads, keys_.streams);
    return;
  }
  if (p.value_in_key) {
    // As llama.cpp's cache of latent attention: strided rows of the key.
    const std::size_t row = call.row_size(type, p.head_dim_qk);
    const std::size_t head = row * static_cast<std::size_t>(keys_.rows);
    value_ = call.view_4d(context_, key_, p.head_dim_v, keys_.rows,
                          p.num_kv_heads, keys_.streams, row, head,
                          head * static_cast<std::size_t>(p.num_kv_heads), 0);
  } else {
    value_ = call.new_tensor_4d(context_, type, p.head_dim_v, keys_.rows,
                                p.num_kv_heads, keys_.streams);
  }
}

void AttentionGraph::add_flash() {
  const Functions& call = library_.call;
  result_ = call.flash_attn_ext(
      context_, query_, key_, value_, mask_,
      static_cast<float>(problem_.scale()),
      static_cast<float>(problem_.alibi_max_bias.value_or(0)),
      static_cast<float>(problem_.softcap.value_or(0)));
  if (sinks_) call.flash_attn_ext_add_sinks(result_, sinks_);
  call.flash_attn_ext_set_prec(result_, kPrecisionF32);
}

// The nodes that llama.cpp puts before the softmax under a soft-cap. They
// apply the scale, of which none is left.
Tensor* AttentionGraph::capped(Tensor* scores, float& scale) {
  if (!problem_.softcap) return scores;
  const Functions& call = library_.call;
  const auto cap = static_cast<float>(*problem_.softcap);
  scores = call.scale(context_, scores, scale / cap);
  scores = call.scale(context_, call.tanh(context_, scores), cap);
  scale = 1;
  return scores;
}

void AttentionGraph::add_softmax() {
  const Functions& call = library_.call;
  Tensor* scores = call.mul_mat(context_, key_, query_);
  call.mul_mat_set_prec(scores, kPrecisionF32);
  auto scale = static_cast<float>(problem_.scale());
  scores = capped(scores, scale);
  weights_ = call.soft_max_ext(
      context_, scores, mask_, scale,
      static_cast<float>(problem_.alibi_max_bias.value_or(0)));
  if (sinks_) call.soft_max_add_sinks(weights_, sinks_);
  Tensor* const value =
      stores_value_transposed()
          ? value_
          : call.cont(context_, call.transpose(context_, value_));
  result_ = call.mul_mat(context_, value, weights_);
}

void AttentionGraph::set_mask(const AttentionCall& call) {
  if (!mask_) return;
  fill_mask(call, queries_, keys_,
            settings_.kernel == Kernel::kFlash ? Dtype::kFp16 : Dtype::kFp32,
            settings_.threads, library_.call.get_data(mask_));
}

void AttentionGraph::fill_sinks() {
  if (!sinks_) return;
  auto* const to = static_cast<float*>(library_.call.get_data(sinks_));
  for (std::int64_t h = 0; h < problem_.num_heads; ++h)
    to[h] = static_cast<float>(problem_.sink(h));
}

ResultStrides AttentionGraph::result_strides() const {
  const std::int64_t channels = problem_.head_dim_v;
  const std::int64_t heads = problem_.num_heads;
  const std::int64_t queries = queries_.rows;
  const std::int64_t stream = channels * heads * queries;
  if (settings_.kernel == Kernel::kFlash)
    return {stream, channels, channels * heads};
  return {stream, channels * queries, channels};
}

Status AttentionGraph::compute(Backend* backend) {
  const int status = library_.call.backend_graph_compute(backend, graph_);
  if (status == kStatusSuccess) return ok_status();
  return {
      StatusCode::kEngineFailure,
      "ggml_backend_graph_compute returned status " + std::to_string(status)};
}

}  // namespace attnguard::ggml
