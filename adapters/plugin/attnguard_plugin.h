// How an attention kernel in any language is checked by attnguard: a shared
// library that exports one C function.
//
//   attnguard check --engine plugin:./libmine.so
//   attnguard check --engine plugin:./libmine.so,threads=4,path=fast
//
// FIVE MINUTES TO A PLUGIN
//
//  1. Copy adapters/plugin/template_plugin.c (C99, plain fp32 attention) and
//     build it; it passes the built-in policy:
//       cc -O2 -shared -fPIC $(pkg-config --cflags attnguard-plugin)
//          template_plugin.c -o libmine.so -lm                (one line)
//       attnguard check --engine plugin:./libmine.so
//  2. Replace its attention function by a call of your kernel.
//  3. In describe(), list the dtypes and features that the kernel has. What is
//     not listed is not asked for. Say in supports() what else it cannot do.
//  4. Tensors on a device: give the four memory functions. The host then never
//     touches their addresses.
//
// Any language that exports a C function and reads C structs will do. This
// header needs <stdint.h> and <stddef.h> alone, C99 or C++11.
//
// RULES
//
//  - Sizes first. Every struct begins with its `size` in bytes as the side
//    that made it knows it. Later versions append fields and never move any:
//    a field is there when it lies within `size`. What lies behind it is read
//    as 0. Structs that are embedded or lie in arrays (tensor, mask term, mask
//    parameter, key range) never change.
//  - ATTNGUARD_PLUGIN_ABI_VERSION changes only when a meaning does.
//  - Functions return an attnguard_status and write a message that ends with 0
//    into message[0 .. message_size). The buffer is never NULL and holds an
//    empty text at first. Exceptions and longjmp must not leave the plugin.
//  - Pointers given to a function are valid until it returns.
//  - Calls of one instance are not concurrent. Several instances may exist.
//  - Nothing but the output, softmax_lse and weights may be written (in
//    append: the cache), and of these only the rows below the entry's length.
//    attnguard checks this too.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_ATTNGUARD_PLUGIN_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_ATTNGUARD_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTNGUARD_PLUGIN_ABI_VERSION 1u

// In front of attnguard_plugin_get.
#if defined(_WIN32)
#define ATTNGUARD_PLUGIN_EXPORT __declspec(dllexport)
#else
#define ATTNGUARD_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

// Any other value is reported as a fault of the plugin.
enum attnguard_status {
  ATTNGUARD_OK = 0,
  ATTNGUARD_INVALID_ARGUMENT = 1,  // The user's options are wrong.
  ATTNGUARD_UNSUPPORTED = 2,       // Right, but this plugin cannot do it.
  ATTNGUARD_OUT_OF_MEMORY = 3,
  ATTNGUARD_FAILED = 4  // Anything else.
};

enum attnguard_dtype {
  ATTNGUARD_FP64 = 0,
  ATTNGUARD_FP32 = 1,
  ATTNGUARD_FP16 = 2,
  ATTNGUARD_BF16 = 3,
  ATTNGUARD_BOOL = 16  // One byte, 0 or 1: mask tensors only.
};

// Bits of attnguard_description.features: what the kernel has beyond plain
// attention with grouped heads. A problem that needs a missing one is reported
// as unsupported and not run.
#define ATTNGUARD_FEATURE_SOFTCAP (UINT64_C(1) << 0)
#define ATTNGUARD_FEATURE_ALIBI (UINT64_C(1) << 1)
#define ATTNGUARD_FEATURE_SINKS (UINT64_C(1) << 2)
#define ATTNGUARD_FEATURE_MASK_TENSOR (UINT64_C(1) << 3)  // attnguard_call.mask
#define ATTNGUARD_FEATURE_VALUE_IN_KEY (UINT64_C(1) << 4)  // MLA
#define ATTNGUARD_FEATURE_PACKED (UINT64_C(1) << 5)        // cu_seqlens
#define ATTNGUARD_FEATURE_PAGED (UINT64_C(1) << 6)         // block_table
#define ATTNGUARD_FEATURE_LSE (UINT64_C(1) << 7)           // writes softmax_lse
#define ATTNGUARD_FEATURE_WEIGHTS (UINT64_C(1) << 8)       // writes weights

// A tensor of four axes: batch, head, position, channel. Element (b, h, i, c)
// lies b*strides[0] + h*strides[1] + i*strides[2] + c*strides[3] elements from
// data, whatever the layout; packed and paged tensors are reached through
// attnguard_query_offset and attnguard_kv_offset below. Inputs are read only.
typedef struct attnguard_tensor {
  void* data;      // NULL: not there, or not asked for.
  uint32_t dtype;  // enum attnguard_dtype
  uint32_t reserved;
  int64_t shape[4];
  int64_t strides[4];  // in elements
} attnguard_tensor;

// ---- The problem -----------------------------------------------------------
//
//   output[b, h, i] = sum_j softmax_j(s(i, j)) value[b, g, j]
//   s(i, j) = bend(softmax_scale * query[b, h, i] . key[b, g, j])
//
// over the keys j that row i may attend to; g = h / (num_heads / num_kv_heads).
// Lengths differ by batch entry: i < seq_len_q[b], j < seq_len_kv[b].

// What a row without any allowed key must give.
enum attnguard_empty_row {
  ATTNGUARD_EMPTY_ZERO = 0,
  ATTNGUARD_EMPTY_NAN = 1,
  ATTNGUARD_EMPTY_MEAN = 2,  // the mean of the entry's values
  ATTNGUARD_EMPTY_ANY = 3    // anything, but written
};

// How the kernel is to be told the mask.
enum attnguard_mask_form {
  ATTNGUARD_MASK_IMPLIED = 0,   // by its own flags: from the fields below
  ATTNGUARD_MASK_BOOLEAN = 1,   // attnguard_call.mask, 1: may attend
  ATTNGUARD_MASK_INVERTED = 2,  // attnguard_call.mask, 1: masked
  ATTNGUARD_MASK_ADDITIVE = 3   // attnguard_call.mask, 0 or -infinity
};

// Order of the axes in memory, slowest first. Only a hint: strides decide.
enum attnguard_layout {
  ATTNGUARD_LAYOUT_BHSD = 0,
  ATTNGUARD_LAYOUT_BSHD = 1,
  ATTNGUARD_LAYOUT_SBHD = 2
};

// A mask is one or more terms, and a key is allowed when every term allows it.
// `attnguard list masks` explains each kind and its parameters. Below, own is
// the key that is the query's token when the last query is the last key:
// own = i + seq_len_kv[b] - seq_len_q[b].
enum attnguard_mask_kind {
  ATTNGUARD_MASK_OTHER = 0,  // Younger than this header: ask row_ranges.
  ATTNGUARD_MASK_FULL = 1,
  ATTNGUARD_MASK_CAUSAL_TOP_LEFT = 2,              // j <= i
  ATTNGUARD_MASK_CAUSAL_BOTTOM_RIGHT = 3,          // j <= own
  ATTNGUARD_MASK_PREFIX_LM = 4,                    // prefix
  ATTNGUARD_MASK_BIDIRECTIONAL_SPANS = 5,          // begin[], length[]
  ATTNGUARD_MASK_TREE = 6,                         // parents[]
  ATTNGUARD_MASK_SLIDING_WINDOW = 7,               // left, right: around own
  ATTNGUARD_MASK_SLIDING_WINDOW_TOP_LEFT = 8,      // left, right: around i
  ATTNGUARD_MASK_SLIDING_WINDOW_KEYS = 9,          // keys
  ATTNGUARD_MASK_SLIDING_WINDOW_TWO_SIDED = 10,    // width
  ATTNGUARD_MASK_WINDOW_SYMMETRIC = 11,            // width
  ATTNGUARD_MASK_ENCODER_WINDOW = 12,              // width
  ATTNGUARD_MASK_CHUNKED_LOCAL = 13,               // chunk
  ATTNGUARD_MASK_CHUNKED_LOCAL_FROM_PADDING = 14,  // chunk, pad[]
  ATTNGUARD_MASK_DOCUMENTS = 15,                   // lengths[]
  ATTNGUARD_MASK_LEFT_PADDING = 16,                // pad[]
  ATTNGUARD_MASK_LEFT_PADDING_KEYS = 17            // pad[]
};

typedef struct attnguard_mask_parameter {
  const char* name;       // "left"
  const int64_t* values;  // [num_values], one unless the parameter is a list
  int64_t num_values;
} attnguard_mask_parameter;

typedef struct attnguard_mask_term {
  const char* name;         // "sliding_window"
  uint32_t kind;            // enum attnguard_mask_kind
  uint32_t num_parameters;  // in the order of the comments above
  const attnguard_mask_parameter* parameters;
} attnguard_mask_term;

// Keys begin <= j < end.
typedef struct attnguard_key_range {
  int64_t begin;
  int64_t end;
} attnguard_key_range;

// Whether the mask as a whole is one window, which most fused kernels take as
// (causal, window_left, window_right).
enum attnguard_window {
  ATTNGUARD_WINDOW_NONE = 0,          // No: use the terms or row_ranges.
  ATTNGUARD_WINDOW_BOTTOM_RIGHT = 1,  // own - left <= j <= own + right
  ATTNGUARD_WINDOW_TOP_LEFT = 2       // i - left <= j <= i + right
};

typedef struct attnguard_problem {
  uint64_t size;
  const char* text;  // "batch=2 num_heads=8 ...": what reports replay with
  const void* host;  // of attnguard; row_ranges needs it
  int64_t batch;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t max_seq_len_q;
  int64_t max_seq_len_kv;
  const int64_t* seq_len_q;   // [batch]; 0 is legal
  const int64_t* seq_len_kv;  // [batch]; 0 is legal
  int64_t head_dim_qk;
  int64_t head_dim_v;
  uint32_t dtype;      // of query, key and value
  uint32_t out_dtype;  // of the output
  double softmax_scale;

  // softcap * tanh(score / softcap), after the scale and before the rest; 0:
  // none.
  double softcap;

  // [num_heads] or NULL: -slope * |j - own| is added to the scores.
  const double* alibi_slopes;

  // [num_heads] or NULL: a logit in the softmax's denominator only.
  const double* sinks;

  uint32_t empty_row;  // enum attnguard_empty_row
  uint32_t mask_form;  // enum attnguard_mask_form

  // The mask, three times; use what suits the kernel. Terms: all must allow.
  const attnguard_mask_term* mask_terms;
  int64_t num_mask_terms;

  uint32_t window;       // enum attnguard_window
  uint32_t layout;       // enum attnguard_layout
  int64_t window_left;   // older keys in reach, own not counted; -1: all
  int64_t window_right;  // later keys in reach, own not counted; -1: all

  // Any mask: the allowed keys of row q_index of an entry, rising, disjoint,
  // within [0, seq_len_kv). Valid until the function that was given the
  // problem returns. May be called from several threads.
  int (*row_ranges)(const struct attnguard_problem* problem, int64_t batch,
                    int64_t q_index, const attnguard_key_range** ranges,
                    int64_t* count);

  uint32_t value_in_key;  // 1: value is the first head_dim_v channels of key
  uint32_t packed;        // 1: see cu_seqlens
  int64_t block_size;     // tokens of a block of paged keys and values; 0: not
  double alibi_max_bias;  // what the slopes were made of; 0: no ALiBi
  int64_t shared_prefix;  // paged: leading tokens that all entries share
} attnguard_problem;

// One attention.
typedef struct attnguard_call {
  uint64_t size;
  const attnguard_problem* problem;
  attnguard_tensor query;  // [batch, num_heads,    max_seq_len_q,  head_dim_qk]
  attnguard_tensor key;    // [batch, num_kv_heads, max_seq_len_kv, head_dim_qk]
  attnguard_tensor value;  // [batch, num_kv_heads, max_seq_len_kv, head_dim_v]
  attnguard_tensor output;  // [batch, num_heads,    max_seq_len_q,  head_dim_v]

  // Asked for when data is not NULL, and only with the feature. fp64 for fp64
  // problems, otherwise fp32.
  //   softmax_lse [batch, num_heads, max_seq_len_q, 1]: log sum_j exp(s(i, j)),
  //     natural logarithm, the sink included; -inf for rows without any.
  //   weights [batch, num_heads, max_seq_len_q, max_seq_len_kv]: the softmax
  //     weights, 0 at keys that are not allowed.
  attnguard_tensor softmax_lse;
  attnguard_tensor weights;

  // [batch, 1, max_seq_len_q, max_seq_len_kv] for all heads alike, in the
  // plugin's memory: ATTNGUARD_BOOL or the problem's dtype. NULL when implied.
  attnguard_tensor mask;

  // Packed problems: [batch + 1], else NULL. Paged ones: the ids of blocks,
  // [batch, block_table_width], else NULL. Both in host memory.
  const int32_t* cu_seqlens_q;
  const int32_t* cu_seqlens_kv;
  const int32_t* block_table;
  int64_t block_table_width;
} attnguard_call;

// Appends tokens to a cache: row r of new_key and new_value of entry b becomes
// token seq_len_kv[b] - num_new + r. The problem is that after the append.
typedef struct attnguard_append {
  uint64_t size;
  const attnguard_problem* problem;
  int64_t num_new;             // tokens of each entry
  attnguard_tensor new_key;    // [batch, num_kv_heads, num_new, head_dim_qk]
  attnguard_tensor new_value;  // [batch, num_kv_heads, num_new, head_dim_v]
  attnguard_tensor key;        // the cache, as in attnguard_call
  attnguard_tensor value;
  const int32_t* cu_seqlens_kv;
  const int32_t* block_table;
  int64_t block_table_width;
} attnguard_append;

// ---- What a plugin says of itself ------------------------------------------

// Filled in by describe(). Everything not mentioned is 0 before.
typedef struct attnguard_description {
  uint64_t size;             // set by attnguard: write nothing behind it
  char name[64];             // "mine 1.2"
  char description[256];     // one line
  uint32_t dtypes;           // bits 1u << ATTNGUARD_FP32 ...: of the inputs
  uint32_t deterministic;    // same inputs, same bits; 1 before
  uint64_t features;         // ATTNGUARD_FEATURE_...
  uint32_t host_accessible;  // 1: the host may use allocate()d addresses
  uint32_t reserved;
} attnguard_description;

// How the kernel rounds on one problem: tolerances follow from it. Claiming
// more than is true gives false alarms, claiming less gives wider tolerances.
// Before numerics(): fp64 for fp64 problems, else fp32, and zeros.
typedef struct attnguard_numerics {
  uint64_t size;
  uint32_t score;        // dtype that scores are held in
  uint32_t probability;  // softmax weights, before the product with values
  uint32_t accumulator;  // sums over keys and channels
  uint32_t reserved;
  double max_input;    // larger |q|, |k|, |v| overflow inside; 0: dtype's limit
  double key_error;    // relative error of a stored key within its block;
  double value_error;  // 0: stored exactly
} attnguard_numerics;

// What follows "plugin:" on the command line. A plugin should refuse options
// that it does not know with ATTNGUARD_INVALID_ARGUMENT.
typedef struct attnguard_options {
  uint64_t size;
  const char* path;          // of the plugin's own file, as given
  const char* const* names;  // [count]
  const char* const* values;
  int64_t count;
} attnguard_options;

// ---- The table of functions ------------------------------------------------

typedef struct attnguard_plugin {
  uint32_t size;         // sizeof(attnguard_plugin)
  uint32_t abi_version;  // ATTNGUARD_PLUGIN_ABI_VERSION

  // Required.
  //
  // create stores what the other functions get as `instance`, NULL if there is
  // nothing to remember. Each success is followed by one destroy; what a
  // failure stored is forgotten.
  int (*create)(const attnguard_options* options, void** instance,
                char* message, size_t message_size);
  void (*destroy)(void* instance);
  int (*describe)(void* instance, attnguard_description* description,
                  char* message, size_t message_size);
  int (*run)(void* instance, const attnguard_call* call, char* message,
             size_t message_size);

  // The rest may be NULL.
  //
  // ATTNGUARD_UNSUPPORTED and the reason in `message` when a problem of listed
  // dtype and features cannot be run. Only asked, never timed.
  int (*supports)(void* instance, const attnguard_problem* problem,
                  char* message, size_t message_size);
  int (*numerics)(void* instance, const attnguard_problem* problem,
                  attnguard_numerics* numerics, char* message,
                  size_t message_size);
  int (*append)(void* instance, const attnguard_append* append, char* message,
                size_t message_size);

  // All four, or none: tensors are then the host's, aligned to 64 bytes.
  // Copies are complete when they return; addresses may lie inside of what was
  // allocated. `size` is in bytes. Each success of allocate is followed by one
  // release, and stores an address that is not NULL; what a failure stored is
  // forgotten, and its message is what reports give as the reason.
  int (*allocate)(void* instance, uint64_t size, void** data, char* message,
                  size_t message_size);
  void (*release)(void* instance, void* data);
  int (*copy_in)(void* instance, void* to, const void* from_host, uint64_t size,
                 char* message, size_t message_size);
  int (*copy_out)(void* instance, void* to_host, const void* from,
                  uint64_t size, char* message, size_t message_size);
} attnguard_plugin;

// The one symbol that a plugin exports. The table must stay valid while the
// library is loaded. `host_abi_version` is the newest that attnguard speaks;
// the table's may be older. NULL: the plugin cannot work with this attnguard.
ATTNGUARD_PLUGIN_EXPORT const attnguard_plugin* attnguard_plugin_get(
    uint32_t host_abi_version);

// ---- Where a token lies ----------------------------------------------------
//
// In elements from tensor->data to channel 0; channel c lies c * strides[3]
// further. Correct for padded, packed and paged problems.

// query and output
static inline int64_t attnguard_query_offset(const attnguard_call* call,
                                             const attnguard_tensor* tensor,
                                             int64_t batch, int64_t head,
                                             int64_t q_index) {
  const int64_t within = head * tensor->strides[1];
  if (call->cu_seqlens_q != NULL)
    return (call->cu_seqlens_q[batch] + q_index) * tensor->strides[2] + within;
  return batch * tensor->strides[0] + q_index * tensor->strides[2] + within;
}

// key and value, by the tables that came with them
static inline int64_t attnguard_table_offset(
    const attnguard_tensor* tensor, const int32_t* cu_seqlens_kv,
    const int32_t* block_table, int64_t block_table_width, int64_t block_size,
    int64_t batch, int64_t kv_head, int64_t kv_index) {
  const int64_t within = kv_head * tensor->strides[1];
  if (block_table != NULL)
    return block_table[batch * block_table_width + kv_index / block_size] *
               tensor->strides[0] +
           kv_index % block_size * tensor->strides[2] + within;
  if (cu_seqlens_kv != NULL)
    return (cu_seqlens_kv[batch] + kv_index) * tensor->strides[2] + within;
  return batch * tensor->strides[0] + kv_index * tensor->strides[2] + within;
}

static inline int64_t attnguard_kv_offset(const attnguard_call* call,
                                          const attnguard_tensor* tensor,
                                          int64_t batch, int64_t kv_head,
                                          int64_t kv_index) {
  return attnguard_table_offset(
      tensor, call->cu_seqlens_kv, call->block_table, call->block_table_width,
      call->problem->block_size, batch, kv_head, kv_index);
}

// ---- The layout, checked by whoever includes this --------------------------

#if defined(__cplusplus)
#define ATTNGUARD_PLUGIN_ASSERT(condition, name) \
  static_assert(condition, "attnguard_plugin.h: layout of " #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define ATTNGUARD_PLUGIN_ASSERT(condition, name) \
  _Static_assert(condition, "attnguard_plugin.h: layout of " #name)
#else
#define ATTNGUARD_PLUGIN_ASSERT(condition, name) \
  typedef char attnguard_layout_of_##name[(condition) ? 1 : -1]
#endif
#define ATTNGUARD_PLUGIN_SIZE(type, bytes) \
  ATTNGUARD_PLUGIN_ASSERT(sizeof(type) == (bytes), type)
#define ATTNGUARD_PLUGIN_FIELD(type, field, bytes) \
  ATTNGUARD_PLUGIN_ASSERT(offsetof(type, field) == (bytes), type##_##field)

#if UINTPTR_MAX == UINT64_MAX
ATTNGUARD_PLUGIN_SIZE(attnguard_tensor, 80);
ATTNGUARD_PLUGIN_FIELD(attnguard_tensor, dtype, 8);
ATTNGUARD_PLUGIN_FIELD(attnguard_tensor, shape, 16);
ATTNGUARD_PLUGIN_FIELD(attnguard_tensor, strides, 48);
ATTNGUARD_PLUGIN_SIZE(attnguard_mask_parameter, 24);
ATTNGUARD_PLUGIN_SIZE(attnguard_mask_term, 24);
ATTNGUARD_PLUGIN_FIELD(attnguard_mask_term, kind, 8);
ATTNGUARD_PLUGIN_FIELD(attnguard_mask_term, parameters, 16);
ATTNGUARD_PLUGIN_SIZE(attnguard_key_range, 16);
ATTNGUARD_PLUGIN_SIZE(attnguard_problem, 224);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, batch, 24);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, seq_len_q, 64);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, dtype, 96);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, softmax_scale, 104);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, sinks, 128);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, mask_terms, 144);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, window, 160);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, row_ranges, 184);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, block_size, 200);
ATTNGUARD_PLUGIN_FIELD(attnguard_problem, shared_prefix, 216);
ATTNGUARD_PLUGIN_SIZE(attnguard_call, 608);
ATTNGUARD_PLUGIN_FIELD(attnguard_call, query, 16);
ATTNGUARD_PLUGIN_FIELD(attnguard_call, output, 256);
ATTNGUARD_PLUGIN_FIELD(attnguard_call, mask, 496);
ATTNGUARD_PLUGIN_FIELD(attnguard_call, block_table_width, 600);
ATTNGUARD_PLUGIN_SIZE(attnguard_append, 368);
ATTNGUARD_PLUGIN_FIELD(attnguard_append, new_key, 24);
ATTNGUARD_PLUGIN_FIELD(attnguard_append, block_table_width, 360);
ATTNGUARD_PLUGIN_SIZE(attnguard_description, 352);
ATTNGUARD_PLUGIN_FIELD(attnguard_description, dtypes, 328);
ATTNGUARD_PLUGIN_FIELD(attnguard_description, features, 336);
ATTNGUARD_PLUGIN_FIELD(attnguard_description, host_accessible, 344);
ATTNGUARD_PLUGIN_SIZE(attnguard_numerics, 48);
ATTNGUARD_PLUGIN_FIELD(attnguard_numerics, max_input, 24);
ATTNGUARD_PLUGIN_SIZE(attnguard_options, 40);
ATTNGUARD_PLUGIN_FIELD(attnguard_options, count, 32);
ATTNGUARD_PLUGIN_SIZE(attnguard_plugin, 96);
ATTNGUARD_PLUGIN_FIELD(attnguard_plugin, create, 8);
ATTNGUARD_PLUGIN_FIELD(attnguard_plugin, run, 32);
ATTNGUARD_PLUGIN_FIELD(attnguard_plugin, supports, 40);
ATTNGUARD_PLUGIN_FIELD(attnguard_plugin, allocate, 64);
ATTNGUARD_PLUGIN_FIELD(attnguard_plugin, copy_out, 88);
#endif

#undef ATTNGUARD_PLUGIN_ASSERT
#undef ATTNGUARD_PLUGIN_SIZE
#undef ATTNGUARD_PLUGIN_FIELD

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_ATTNGUARD_PLUGIN_H_
