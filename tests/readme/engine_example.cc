#include "guard/pipeline.h"

// Yours: one head. Strides count floats from row to row.
void my_head(const void* query, long q_stride, const void* key, long k_stride,
             const void* value, long v_stride, void* output, long out_stride,
             long seq_len_q, long seq_len_kv, long head_dim_qk, long head_dim_v,
             double softmax_scale);

attnguard::Engine my_engine() {
  attnguard::Engine engine{.name = "my_head"};
  engine.capabilities.dtypes = {attnguard::Dtype::kFp32};
  engine.capabilities.unsupported = [](const attnguard::Problem& problem) {
    return problem.mask.text() == "causal_bottom_right" ? "" : "another mask";
  };
  engine.run = [](const attnguard::AttentionCall& call) {
    const attnguard::Problem* p = call.problem;
    const auto &q = call.query, &k = call.key, &v = call.value;
    for (std::int64_t b = 0; b < p->batch; ++b)
      for (std::int64_t h = 0; h < p->num_heads; ++h) {
        const std::int64_t g = p->kv_head_of(h);
        my_head(q.at(b, h, 0), q.strides[2], k.at(b, g, 0), k.strides[2],
                v.at(b, g, 0), v.strides[2], call.output.at(b, h, 0),
                call.output.strides[2], p->len_q(b), p->len_kv(b),
                p->head_dim_qk, p->head_dim_v, p->scale());
      }
    return attnguard::ok_status();
  };
  return engine;
}
