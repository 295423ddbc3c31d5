// The kernel of example.cc: plain causal attention. KERNEL_EXTRA_KEYS more
// keys are visible to each row than should be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef KERNEL_EXTRA_KEYS
#define KERNEL_EXTRA_KEYS 0
#endif

void my_attention(const float* query, const float* key, const float* value,
                  float* output, std::int64_t batch, std::int64_t num_heads,
                  std::int64_t num_kv_heads, std::int64_t seq_len_q,
                  std::int64_t seq_len_kv, std::int64_t head_dim_qk,
                  std::int64_t head_dim_v, float softmax_scale) {
  // Tests count the calls.
  if (std::getenv("KERNEL_TELLS") != nullptr) std::fputs("call\n", stderr);
  const std::int64_t group = num_heads / num_kv_heads;
  for (std::int64_t r = 0; r < batch * num_heads * seq_len_q; ++r) {
    const std::int64_t i = r % seq_len_q, h = r / seq_len_q;
    const std::int64_t g = h / num_heads * num_kv_heads + h % num_heads / group;
    const std::int64_t end = std::clamp<std::int64_t>(
        i + seq_len_kv - seq_len_q + 1 + KERNEL_EXTRA_KEYS, 0, seq_len_kv);
    std::vector<double> weights(static_cast<std::size_t>(end));
    double top = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < end; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < head_dim_qk; ++c)
        score += static_cast<double>(query[r * head_dim_qk + c]) *
                 key[(g * seq_len_kv + j) * head_dim_qk + c];
      weights[static_cast<std::size_t>(j)] = score * softmax_scale;
      top = std::max(top, score * softmax_scale);
    }
    for (double& weight : weights) sum += weight = std::exp(weight - top);
    for (std::int64_t c = 0; c < head_dim_v; ++c) {
      double out = 0;
      for (std::int64_t j = 0; j < end; ++j)
        out += weights[static_cast<std::size_t>(j)] *
               value[(g * seq_len_kv + j) * head_dim_v + c];
      output[r * head_dim_v + c] =
          end > 0 ? static_cast<float>(out / sum) : 0.0F;
    }
  }
}
