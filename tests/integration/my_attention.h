/* The kernel that the examples of adapters/INTEGRATION.md check: causal fp32
 * attention of grouped heads, the last query aligned with the last key. Strides
 * count floats from batch to batch, head to head and position to position;
 * channels are contiguous. Rows without a key give 0. */
#ifndef ATTNGUARD_TESTS_INTEGRATION_MY_ATTENTION_H_
#define ATTNGUARD_TESTS_INTEGRATION_MY_ATTENTION_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* seq_len_q and seq_len_kv are [batch]. The environment variable
 * MY_ATTENTION_LEAKS shows each row one key too many. */
void my_attention(const void* query, const int64_t* query_strides,
                  const void* key, const int64_t* key_strides,
                  const void* value, const int64_t* value_strides, void* output,
                  const int64_t* output_strides, int64_t batch,
                  int64_t num_heads, int64_t num_kv_heads,
                  const int64_t* seq_len_q, const int64_t* seq_len_kv,
                  int64_t head_dim_qk, int64_t head_dim_v, double scale);

#ifdef __cplusplus
}
#endif

#endif /* ATTNGUARD_TESTS_INTEGRATION_MY_ATTENTION_H_ */
