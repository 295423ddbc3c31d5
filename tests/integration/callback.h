#include "guard/pipeline.h"
#include "my_attention.h"  // Yours.

inline attnguard::Engine my_engine() {
  attnguard::Engine engine{.name = "my_attention"};
  engine.capabilities.dtypes = {attnguard::Dtype::kFp32};
  engine.capabilities.unsupported = [](const attnguard::Problem& p) {
    if (p.mask.text() != "causal_bottom_right") return "causal only";
    return p.empty_row == attnguard::EmptyRow::kZero ? "" : "empty rows are 0";
  };
  engine.run = [](const attnguard::AttentionCall& call) {
    const attnguard::Problem& p = *call.problem;
    std::vector<std::int64_t> len_q, len_kv;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      len_q.push_back(p.len_q(b));
      len_kv.push_back(p.len_kv(b));
    }
    my_attention(call.query.data, call.query.strides.data(), call.key.data,
                 call.key.strides.data(), call.value.data,
                 call.value.strides.data(), call.output.data,
                 call.output.strides.data(), p.batch, p.num_heads,
                 p.num_kv_heads, len_q.data(), len_kv.data(), p.head_dim_qk,
                 p.head_dim_v, p.scale());
    return attnguard::ok_status();
  };
  return engine;
}
