// A plugin to copy: plain fp32 attention in C99. See attnguard_plugin.h.
//
//   cc -std=c99 -O2 -shared -fPIC -I<prefix>/include/attnguard
//      template_plugin.c -o libmine.so -lm
//   attnguard check --engine plugin:./libmine.so
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/plugin/attnguard_plugin.h"

// What an instance remembers: here nothing but an option.
typedef struct Mine {
  double temperature;  // scores are divided by it; anything but 1 is a bug
} Mine;

// Every failure is a status and a message that says what to do.
static int fail(int status, char* message, size_t size, const char* format,
                ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, size, format, arguments);
  va_end(arguments);
  return status;
}

// Options are what follows the path: plugin:./libmine.so,temperature=2
static int create(const attnguard_options* options, void** instance,
                  char* message, size_t size) {
  Mine* mine = malloc(sizeof *mine);
  if (mine == NULL)
    return fail(ATTNGUARD_OUT_OF_MEMORY, message, size, "no memory");
  mine->temperature = 1;
  for (int64_t i = 0; i < options->count; ++i) {
    const char* value = options->values[i];
    char* end = NULL;
    if (strcmp(options->names[i], "temperature") == 0) {
      mine->temperature = strtod(value, &end);
      if (end != value && *end == 0 && mine->temperature > 0) continue;
      free(mine);
      return fail(ATTNGUARD_INVALID_ARGUMENT, message, size,
                  "temperature= expects a number above 0, not '%s'", value);
    }
    free(mine);
    return fail(ATTNGUARD_INVALID_ARGUMENT, message, size,
                "unknown option '%s'; known: temperature", options->names[i]);
  }
  *instance = mine;
  return ATTNGUARD_OK;
}

static void destroy(void* instance) { free(instance); }

// List only what the kernel really has. Packed and paged tensors, and values
// inside of keys, cost nothing here: attnguard_query_offset and
// attnguard_kv_offset find every token.
static int describe(void* instance, attnguard_description* description,
                    char* message, size_t size) {
  (void)instance, (void)message, (void)size;
  snprintf(description->name, sizeof description->name, "template");
  snprintf(description->description, sizeof description->description,
           "plain fp32 attention, one thread");
  description->dtypes = 1u << ATTNGUARD_FP32;
  description->features = ATTNGUARD_FEATURE_PACKED | ATTNGUARD_FEATURE_PAGED |
                          ATTNGUARD_FEATURE_VALUE_IN_KEY;
  return ATTNGUARD_OK;
}

// What dtypes and features do not say.
static int supports(void* instance, const attnguard_problem* problem,
                    char* message, size_t size) {
  (void)instance;
  if (problem->out_dtype != ATTNGUARD_FP32)
    return fail(ATTNGUARD_UNSUPPORTED, message, size, "the output is fp32");
  if (problem->empty_row != ATTNGUARD_EMPTY_ZERO &&
      problem->empty_row != ATTNGUARD_EMPTY_ANY)
    return fail(ATTNGUARD_UNSUPPORTED, message, size, "empty rows give 0");
  return ATTNGUARD_OK;
}

// One row: softmax(scale * q . k_j) v_j over the keys of `ranges`. Sums are
// kept in double: in float, thousands of equal weights do not sum to 1.
static void attend(const attnguard_call* call, double scale, int64_t batch,
                   int64_t head, int64_t q_index,
                   const attnguard_key_range* ranges, int64_t num_ranges,
                   double* weights, double* sums) {
  const attnguard_problem* problem = call->problem;
  const attnguard_tensor *q = &call->query, *k = &call->key, *v = &call->value;
  const int64_t group = head / (problem->num_heads / problem->num_kv_heads);
  const float* query = (const float*)q->data +
                       attnguard_query_offset(call, q, batch, head, q_index);
  double largest = -HUGE_VAL, total = 0;
  for (int64_t r = 0; r < num_ranges; ++r)
    for (int64_t j = ranges[r].begin; j < ranges[r].end; ++j) {
      const float* key =
          (const float*)k->data + attnguard_kv_offset(call, k, batch, group, j);
      double dot = 0;
      for (int64_t c = 0; c < problem->head_dim_qk; ++c)
        dot += (double)query[c * q->strides[3]] * key[c * k->strides[3]];
      weights[j] = scale * dot;
      if (weights[j] > largest) largest = weights[j];
    }
  memset(sums, 0, (size_t)problem->head_dim_v * sizeof *sums);
  for (int64_t r = 0; r < num_ranges; ++r)
    for (int64_t j = ranges[r].begin; j < ranges[r].end; ++j) {
      const float* value =
          (const float*)v->data + attnguard_kv_offset(call, v, batch, group, j);
      const double weight = exp(weights[j] - largest);
      total += weight;
      for (int64_t c = 0; c < problem->head_dim_v; ++c)
        sums[c] += weight * value[c * v->strides[3]];
    }
  const attnguard_tensor* o = &call->output;
  float* output =
      (float*)o->data + attnguard_query_offset(call, o, batch, head, q_index);
  for (int64_t c = 0; c < problem->head_dim_v; ++c)
    output[c * o->strides[3]] = num_ranges > 0 ? (float)(sums[c] / total) : 0;
}

// One attention: replace this by a call of your kernel. Lengths differ by
// batch entry; rows past an entry's own length are left alone.
static int run(void* instance, const attnguard_call* call, char* message,
               size_t size) {
  const Mine* mine = instance;
  const attnguard_problem* problem = call->problem;
  const double scale = problem->softmax_scale / mine->temperature;
  double* weights =
      malloc((size_t)(problem->max_seq_len_kv + 1) * sizeof(double));
  double* sums = malloc((size_t)problem->head_dim_v * sizeof(double));
  int status = ATTNGUARD_OK;
  if (weights == NULL || sums == NULL)
    status = fail(ATTNGUARD_OUT_OF_MEMORY, message, size, "no memory");
  for (int64_t b = 0; b < problem->batch && status == ATTNGUARD_OK; ++b)
    for (int64_t i = 0; i < problem->seq_len_q[b] && status == ATTNGUARD_OK;
         ++i) {
      // The keys that the row may attend to, whatever the mask. Kernels with
      // masks of their own read problem->window or problem->mask_terms.
      const attnguard_key_range* ranges = NULL;
      int64_t count = 0;
      status = problem->row_ranges(problem, b, i, &ranges, &count);
      for (int64_t h = 0; h < problem->num_heads && status == ATTNGUARD_OK; ++h)
        attend(call, scale, b, h, i, ranges, count, weights, sums);
    }
  free(weights);
  free(sums);
  return status;
}

// What is not named is NULL: no numerics, no append, tensors on the host.
static const attnguard_plugin kPlugin = {
    .size = sizeof(attnguard_plugin),
    .abi_version = ATTNGUARD_PLUGIN_ABI_VERSION,
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .run = run,
    .supports = supports,
};

ATTNGUARD_PLUGIN_EXPORT const attnguard_plugin* attnguard_plugin_get(
    uint32_t host_abi_version) {
  return host_abi_version >= kPlugin.abi_version ? &kPlugin : NULL;
}
