#include "adapters/plugin/attnguard_plugin.h"
#include "my_attention.h"  // Yours.
#define TEXT char *message, size_t message_size

static int create(const attnguard_options* o, void** self, TEXT) { return 0; }
static void destroy(void* self) {}
static int describe(void* self, attnguard_description* d, TEXT) {
  d->dtypes = 1u << ATTNGUARD_FP32;
  return ATTNGUARD_OK;
}
static int supports(void* self, const attnguard_problem* p, TEXT) {
  if (p->window == ATTNGUARD_WINDOW_BOTTOM_RIGHT && p->window_left == -1 &&
      p->window_right == 0 && p->empty_row == ATTNGUARD_EMPTY_ZERO)
    return ATTNGUARD_OK;
  return ATTNGUARD_UNSUPPORTED;
}
static int run(void* self, const attnguard_call* c, TEXT) {
  const attnguard_problem* p = c->problem;
  my_attention(c->query.data, c->query.strides, c->key.data, c->key.strides,
               c->value.data, c->value.strides, c->output.data,
               c->output.strides, p->batch, p->num_heads, p->num_kv_heads,
               p->seq_len_q, p->seq_len_kv, p->head_dim_qk, p->head_dim_v,
               p->softmax_scale);
  return ATTNGUARD_OK;
}
static const attnguard_plugin kMine = {sizeof kMine, 1,   create,  destroy,
                                       describe,     run, supports};
const attnguard_plugin* attnguard_plugin_get(uint32_t abi) { return &kMine; }
