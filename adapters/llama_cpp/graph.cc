#include "adapters/llama_cpp/graph.h"

#include <string>

namespace attnguard::ggml {
namespace {

constexpr std::size_t kMaxTensors = 16;  // Inputs, mask and nodes, with room.

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
  self->fill_mask();
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
  const std::int64_t keys = p.max_len_kv();
  const bool flash = settings_.kernel == Kernel::kFlash;
  query_ = call.new_tensor_4d(context_, f32, p.head_dim_qk, p.max_len_q(),
                              p.num_heads, p.batch);
  key_ = call.new_tensor_4d(context_, settings_.key_storage(p.dtype).type,
                            p.head_dim_qk, keys, p.num_kv_heads, p.batch);
  value_ =
      call.new_tensor_4d(context_, settings_.value_storage(p.dtype).type,
                         flash ? p.head_dim_v : keys,
                         flash ? keys : p.head_dim_v, p.num_kv_heads, p.batch);
  if (!needs_mask(p)) return;
  mask_ =
      call.new_tensor_4d(context_, flash ? storage_of(Dtype::kFp16).type : f32,
                         keys, mask_rows(p), 1, p.batch);
}

void AttentionGraph::add_flash() {
  const float scale = static_cast<float>(problem_.scale());
  result_ = library_.call.flash_attn_ext(context_, query_, key_, value_, mask_,
                                         scale, 0, 0);
  library_.call.flash_attn_ext_set_prec(result_, kPrecisionF32);
}

void AttentionGraph::add_softmax() {
  const Functions& call = library_.call;
  Tensor* scores = call.mul_mat(context_, key_, query_);
  call.mul_mat_set_prec(scores, kPrecisionF32);
  Tensor* weights = call.soft_max_ext(context_, scores, mask_,
                                      static_cast<float>(problem_.scale()), 0);
  result_ = call.mul_mat(context_, value_, weights);
}

void AttentionGraph::fill_mask() {
  if (!mask_) return;
  void* to = library_.call.get_data(mask_);
  if (settings_.kernel == Kernel::kFlash)
    fill_mask_f16(problem_, settings_.threads, to);
  else
    fill_mask_f32(problem_, settings_.threads, to);
}

ResultStrides AttentionGraph::result_strides() const {
  const std::int64_t channels = problem_.head_dim_v;
  const std::int64_t heads = problem_.num_heads;
  const std::int64_t queries = problem_.max_len_q();
  const std::int64_t batch = channels * heads * queries;
  if (settings_.kernel == Kernel::kFlash)
    return {batch, channels, channels * heads};
  return {batch, channels * queries, channels};
}

Status AttentionGraph::compute(Backend* backend) {
  const int status = library_.call.backend_graph_compute(backend, graph_);
  if (status == kStatusSuccess) return ok_status();
  return {
      StatusCode::kEngineFailure,
      "ggml_backend_graph_compute returned status " + std::to_string(status)};
}

}  // namespace attnguard::ggml
