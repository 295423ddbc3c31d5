// The live guard for engines that are not C++: plain C, one opaque handle.
//
//   char message[256];
//   attnguard_guard* guard = attnguard_guard_create(
//       "max_overhead=0.005 sample=1000", message, sizeof message);
//   uint32_t layer = attnguard_guard_layer(guard, "blk.7.attn");
//   ...
//   my_attention(...);
//   if (attnguard_guard_sampled(guard, layer))
//     attnguard_guard_observe(guard, layer, &call);
//
// Every function may be called from any thread, and none throws or exits.
#ifndef ATTNGUARD_GUARD_RUNTIME_ATTNGUARD_GUARD_H_
#define ATTNGUARD_GUARD_RUNTIME_ATTNGUARD_GUARD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attnguard_guard attnguard_guard;

// Any other value is not one of these.
enum attnguard_guard_dtype {
  ATTNGUARD_GUARD_FP64 = 0,
  ATTNGUARD_GUARD_FP32 = 1,
  ATTNGUARD_GUARD_FP16 = 2,
  ATTNGUARD_GUARD_BF16 = 3
};

// Element (b, h, i, c) lies b*strides[0] + h*strides[1] + i*strides[2] +
// c*strides[3] elements from data, in memory of the host.
typedef struct attnguard_guard_tensor {
  void* data;
  uint32_t dtype;  // enum attnguard_guard_dtype
  uint32_t reserved;
  int64_t shape[4];  // batch, heads, positions, channels
  int64_t strides[4];
} attnguard_guard_tensor;

// A finished attention call. Set size to sizeof(attnguard_guard_call): later
// versions append fields.
typedef struct attnguard_guard_call {
  uint64_t size;

  // What was computed, as `attnguard explain problem` describes it:
  // "num_heads=8 num_kv_heads=2 seq_len_q=1 seq_len_kv=700 head_dim=64
  // dtype=fp16 mask=causal_bottom_right" (one line).
  const char* problem;

  attnguard_guard_tensor query;
  attnguard_guard_tensor key;
  attnguard_guard_tensor value;
  attnguard_guard_tensor output;  // Written where the policy says fallback.

  // [batch] ids of the sequences, or NULL.
  const uint64_t* sequences;

  // Of paged keys and values (block_size in the problem): strides[0] of key
  // and value then steps from block to block. NULL: padded.
  const int32_t* block_table;  // [batch, block_table_width]
  int64_t block_table_width;
} attnguard_guard_call;

// Called for each check that found something, from the observing thread;
// `text` names layer, check, batch, head, query and channel.
typedef void (*attnguard_guard_on_violation)(void* user, const char* check,
                                             const char* text);

typedef struct attnguard_guard_counts {
  uint64_t calls;
  uint64_t sampled;
  uint64_t checked;
  uint64_t violations;  // of all checks
  uint64_t overhead_nanoseconds;
  uint64_t elapsed_nanoseconds;
} attnguard_guard_counts;

// NULL when the options are wrong, with the reason in message. `options` are
// words NAME=VALUE, any of them left out: sample (1 of so many calls; 1000),
// max_overhead (a share, or none; 0.005), window (seconds; 10), rows (4),
// seed (1), off (a check that is not made; may be repeated).
attnguard_guard* attnguard_guard_create(const char* options, char* message,
                                        size_t message_size);
void attnguard_guard_destroy(attnguard_guard* guard);

// Set before the first call is observed.
void attnguard_guard_set_callback(attnguard_guard* guard,
                                  attnguard_guard_on_violation callback,
                                  void* user);

uint32_t attnguard_guard_layer(attnguard_guard* guard, const char* name);
int attnguard_guard_sampled(attnguard_guard* guard, uint32_t layer);

// The number of checks that found something; -1: the call or its problem line
// is wrong (see attnguard_guard_last_error).
int attnguard_guard_observe(attnguard_guard* guard, uint32_t layer,
                            const attnguard_guard_call* call);

// What the caller itself found wrong in the engine, and what no call shows: a
// mask, a cache cell. `check` names the caller's check in one word, `message`
// says in a sentence what is wrong and where; both are copied. It is counted
// and handed to the callback as check "engine". 1, or 0 where `off=engine`; -1:
// a text is NULL or there is no such layer (see attnguard_guard_last_error).
int attnguard_guard_report(attnguard_guard* guard, uint32_t layer,
                           const char* check, const char* message);

// Of the calling thread; valid until its next call. Never NULL.
const char* attnguard_guard_last_error(void);

void attnguard_guard_append(attnguard_guard* guard, uint64_t sequence,
                            int64_t first, int64_t count);
void attnguard_guard_truncate(attnguard_guard* guard, uint64_t sequence,
                              int64_t length);
void attnguard_guard_fork(attnguard_guard* guard, uint64_t parent,
                          uint64_t child);
void attnguard_guard_evict(attnguard_guard* guard, uint64_t sequence);

attnguard_guard_counts attnguard_guard_counters(const attnguard_guard* guard);

#ifdef __cplusplus
}
#endif

#endif  // ATTNGUARD_GUARD_RUNTIME_ATTNGUARD_GUARD_H_
