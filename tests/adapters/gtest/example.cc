#include <gmock/gmock.h>

#include <cstdint>

#include "adapters/gtest/gtest.h"
#include "adapters/plain/plain.h"

// Yours: arrays without gaps, axes [batch, head, position, channel].
void my_attention(const float* query, const float* key, const float* value,
                  float* output, std::int64_t batch, std::int64_t num_heads,
                  std::int64_t num_kv_heads, std::int64_t seq_len_q,
                  std::int64_t seq_len_kv, std::int64_t head_dim_qk,
                  std::int64_t head_dim_v, float softmax_scale);

attnguard::Engine my_engine() {
  attnguard::PlainOptions options;
  options.masks = {"causal_bottom_right"};  // The masks that it implements.
  options.grouped_heads = true;  // It takes num_kv_heads < num_heads.
  return attnguard::plain_fp32_engine("my_attention", options, my_attention);
}

TEST(MyAttention, IsCausal) { EXPECT_THAT(my_engine(), attnguard::IsCausal()); }

// One test for each problem of the policy and each check.
ATTNGUARD_TESTS(MyAttentionIn, my_engine(), "attention.yaml");
