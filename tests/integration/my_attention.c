#include "my_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float* row(const void* data, const int64_t* strides, int64_t b,
                        int64_t h, int64_t i) {
  return (const float*)data + b * strides[0] + h * strides[1] + i * strides[2];
}

static double dot(const float* a, const float* b, int64_t size) {
  double sum = 0;
  for (int64_t c = 0; c < size; ++c) sum += (double)a[c] * b[c];
  return sum;
}

void my_attention(const void* query, const int64_t* query_strides,
                  const void* key, const int64_t* key_strides,
                  const void* value, const int64_t* value_strides, void* output,
                  const int64_t* output_strides, int64_t batch,
                  int64_t num_heads, int64_t num_kv_heads,
                  const int64_t* seq_len_q, const int64_t* seq_len_kv,
                  int64_t head_dim_qk, int64_t head_dim_v, double scale) {
  const int64_t extra = getenv("MY_ATTENTION_LEAKS") != NULL;
  double* sums = (double*)malloc((size_t)(head_dim_v + 1) * sizeof *sums);
  if (sums == NULL) abort();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < num_heads; ++h)
      for (int64_t i = 0; i < seq_len_q[b]; ++i) {
        const int64_t g = h / (num_heads / num_kv_heads);
        const float* q = row(query, query_strides, b, h, i);
        int64_t end = i + seq_len_kv[b] - seq_len_q[b] + 1 + extra;
        if (end > seq_len_kv[b]) end = seq_len_kv[b];
        double largest = -HUGE_VAL, total = 0;
        for (int64_t j = 0; j < end; ++j)
          largest = fmax(largest, scale * dot(q, row(key, key_strides, b, g, j),
                                              head_dim_qk));
        memset(sums, 0, (size_t)(head_dim_v + 1) * sizeof *sums);
        for (int64_t j = 0; j < end; ++j) {
          const float* v = row(value, value_strides, b, g, j);
          const double score =
              scale * dot(q, row(key, key_strides, b, g, j), head_dim_qk);
          const double weight = exp(score - largest);
          total += weight;
          for (int64_t c = 0; c < head_dim_v; ++c) sums[c] += weight * v[c];
        }
        float* out = (float*)row(output, output_strides, b, h, i);
        for (int64_t c = 0; c < head_dim_v; ++c)
          out[c] = total > 0 ? (float)(sums[c] / total) : 0;
      }
  free(sums);
}
