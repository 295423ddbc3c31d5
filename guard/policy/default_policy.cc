// The built-in policy: what a run without a file uses, and the page that a
// person who writes their own policy begins from.
#include "guard/policy/policy_yaml.h"

namespace attnguard {

std::string_view default_policy_text() {
  return R"yaml(# The built-in policy: what a run without a file uses.
#
# A policy of your own needs only the keys that differ, for instance
#
#   version: 1
#   tolerances:
#     reference: {fp16: 2.0e-3}
#
# Whatever a file leaves out stays as it is here; a file that has `problems`
# replaces the whole list below, and one that has `engines` the overrides at
# the end.

version: 1

# Every random choice follows from the seed: the same seed, the same run.
seed: 1

# How many cuts and rows each problem gets: sampled (quickest) | edges | full.
coverage: edges

# What a violation of each check is: error | warning | off. "*" is every
# check; a check's own line wins over it.
checks:
  "*": error

# How much may differ: auto (a bound derived from dtype and length), exact
# (bitwise) or a number (absolute difference); for all dtypes at once, or by
# dtype: {fp32: auto, fp16: 2.0e-3}.
tolerances:
  "*": auto

# Each entry's lists expand as a product. A list in a list is one value: one
# length per batch entry, or the four strides [batch, head, position, channel].
# num_kv_heads defaults to num_heads; seq_len and head_dim set both lengths and
# both dims. Most problems are small: what goes wrong in kernels depends on
# edges, shapes and layouts far more than on size.
problems:
  # The smallest: a failure here draws an influence map that fits the eye.
  - batch: 2
    num_heads: 2
    seq_len: [1, 2, 5]
    head_dim: 32
    dtype: [fp32, fp16]
    mask: [full, causal_top_left]

  # Lengths around the usual tiles, one below to one above.
  - num_heads: 2
    seq_len: [15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257]
    head_dim: 64
    dtype: fp32
    mask: [full, causal_top_left, causal_bottom_right]

  # The same edges in low precision, where kernels take other paths.
  - num_heads: 4
    num_kv_heads: 2
    seq_len: [16, 33, 64, 65, 127, 129]
    head_dim: 64
    dtype: [fp16, bf16]
    mask: causal_bottom_right

  # Decode: one query against a cache. Kernels have a path of its own for it,
  # and split long caches among workers that merge their parts.
  - num_heads: 8
    num_kv_heads: 2
    seq_len_q: 1
    seq_len_kv: [1, 2, 17, 64, 129, 256, 257, 1024]
    head_dim: 64
    dtype: [fp32, fp16]
    mask: causal_bottom_right
  - batch: 2
    num_heads: 4
    num_kv_heads: 1
    seq_len_q: 1
    seq_len_kv: [33, 2048, 4096]
    head_dim: 128
    dtype: bf16
    mask: full

  # Chunked prefill: fewer queries than keys, the last query is the last key.
  - num_heads: 4
    num_kv_heads: 2
    seq_len_q: [5, 16, 33]
    seq_len_kv: [65, 128, 200]
    head_dim: 64
    dtype: [fp32, fp16]
    mask: causal_bottom_right

  # Fewer queries than keys with the first query at the first key, and without
  # a mask.
  - num_heads: 2
    seq_len_q: [5, 33]
    seq_len_kv: [64, 65]
    head_dim: 64
    dtype: fp32
    mask: [causal_top_left, full]

  # More queries than keys. Aligned at the bottom right, the first queries see
  # no key at all; an engine says what it owes for such a row.
  - num_heads: 2
    seq_len_q: [17, 64]
    seq_len_kv: [5, 33]
    head_dim: 64
    dtype: fp32
    mask: [full, causal_top_left, causal_bottom_right]

  # Sequences of unlike lengths in one batch (right padding). Nothing past a
  # sequence's own length may be read.
  - batch: 3
    num_heads: 4
    num_kv_heads: 2
    seq_len_q: [[17, 9, 1]]
    seq_len_kv: [[17, 9, 1], [64, 33, 5]]
    head_dim: 64
    dtype: [fp32, fp16]
    mask: [full, causal_bottom_right]

  # One sequence of the batch is empty: it has no keys, or no queries.
  - batch: 2
    num_heads: 2
    seq_len_q: 3
    seq_len_kv: [[5, 0], [0, 6]]
    head_dim: 64
    dtype: fp32
    mask: [full, causal_bottom_right]
  - batch: 2
    num_heads: 2
    seq_len_q: [[4, 0], [0, 4]]
    seq_len_kv: 6
    head_dim: 64
    dtype: fp32
    mask: full

  # Head dims off the vector width and beyond one tile.
  - num_heads: 2
    seq_len: 35
    head_dim: [8, 33, 40, 72, 80, 96, 128, 256]
    dtype: [fp32, fp16]
    mask: causal_top_left

  # Value channels unlike query and key channels.
  - num_heads: 2
    seq_len: 33
    head_dim_qk: [40, 96]
    head_dim_v: [64, 128]
    dtype: fp32
    mask: causal_bottom_right
  - num_heads: 4
    num_kv_heads: 1
    seq_len: 33
    head_dim_qk: 192
    head_dim_v: 128
    dtype: bf16
    mask: causal_bottom_right

  # Grouped-query attention whose ratio is not a square or a power of two: a
  # head that is mapped by % instead of / shows.
  - batch: 2
    num_heads: [6, 8]
    num_kv_heads: 2
    seq_len: 20
    head_dim: 64
    dtype: [fp32, fp16]
    mask: [full, causal_bottom_right]
  - num_heads: 12
    num_kv_heads: 4
    seq_len: 20
    head_dim: 64
    dtype: [fp32, bf16]
    mask: causal_bottom_right
  - batch: 2
    num_heads: 5
    num_kv_heads: 1
    seq_len_q: [1, 20]
    seq_len_kv: 40
    head_dim: 64
    dtype: fp32
    mask: causal_bottom_right

  # Batches that do not fill a worker's share.
  - batch: [1, 3, 9]
    num_heads: 3
    seq_len: 12
    head_dim: 64
    dtype: fp32
    mask: [full, causal_top_left]

  # Double precision, and an output wider than the inputs.
  - num_heads: 2
    seq_len: [16, 65]
    head_dim: 64
    dtype: fp64
    mask: causal_top_left
  - num_heads: 2
    seq_len: 33
    head_dim: 64
    dtype: [fp16, bf16]
    out_dtype: fp32
    mask: causal_bottom_right

  # Sliding windows: keys to the left and right of the query, itself not
  # counted. With either causal alignment, without, and with fewer queries than
  # keys. A value with a comma stands in quotes.
  - num_heads: 2
    seq_len: [33, 70]
    head_dim: 64
    dtype: fp32
    mask:
      - "sliding_window(left=7,right=0)"
      - "sliding_window(left=5,right=3)"
      - "sliding_window(left=-1,right=2)"
      - "causal_top_left+sliding_window_top_left(left=7,right=0)"
      - "causal_bottom_right+sliding_window(left=16,right=-1)"
  - num_heads: 2
    seq_len_q: [1, 9]
    seq_len_kv: 70
    head_dim: 64
    dtype: fp16
    mask:
      - "sliding_window(left=7,right=0)"
      - "causal_bottom_right+sliding_window(left=31,right=0)"

  # A prefix that every query sees, causal after it.
  - num_heads: 2
    seq_len_q: [9, 33]
    seq_len_kv: 33
    head_dim: 64
    dtype: fp32
    mask: ["prefix_lm(prefix=0)", "prefix_lm(prefix=5)", "prefix_lm(prefix=31)"]

  # Causal, but both ways within a span of tokens (an image).
  - num_heads: 2
    seq_len_q: [20, 33]
    seq_len_kv: 33
    head_dim: 64
    dtype: fp32
    mask: "bidirectional_spans(begin=3:20,length=8:10)"

  # Windows as engines count them, beside FlashAttention's above.
  - num_heads: 2
    seq_len: 40
    head_dim: 64
    dtype: fp32
    mask:
      - sliding_window_keys(keys=8)
      - sliding_window_two_sided(width=4)
      - window_symmetric(width=9)
      - encoder_window(width=5)

  # Chunks of the position, counted from key 0.
  - num_heads: 2
    seq_len_q: [9, 70]
    seq_len_kv: 70
    head_dim: 64
    dtype: fp32
    mask:
      - chunked_local(chunk=16)
      - causal_bottom_right+chunked_local(chunk=32)

  # Documents packed into one row, one of them empty, padding behind them.
  - num_heads: 4
    num_kv_heads: 2
    seq_len: 40
    head_dim: 64
    dtype: fp16
    mask:
      - "documents(lengths=17:0:16:7)"
      - "causal_bottom_right+documents(lengths=5:3:0:24)"

  # Padding on the left, in prefill and in decode; chunks that begin after it.
  - batch: 3
    num_heads: 2
    seq_len_q: [1, 20]
    seq_len_kv: 20
    head_dim: 64
    dtype: fp32
    mask:
      - "causal_bottom_right+left_padding(pad=3:0:17)"
      - "left_padding_keys(pad=3:0:17)"
      - "causal_bottom_right+chunked_local_from_padding(chunk=8,pad=3:0:12)"

  # Trees of drafted tokens, behind committed ones and alone. A token's elder
  # siblings stand before it and must not be seen.
  - num_heads: 2
    seq_len_q: 6
    seq_len_kv: [6, 38]
    head_dim: 64
    dtype: fp32
    mask: "tree(parents=-1:0:0:1:1:2)"

  # Orders of the axes in memory.
  - batch: 2
    num_heads: 4
    num_kv_heads: 2
    seq_len: 33
    head_dim: 40
    dtype: [fp32, fp16]
    mask: causal_top_left
    layout: [bhsd, bshd, sbhd]

  # Explicit strides: rows of 40 channels padded to 48 in query and output ...
  - batch: 2
    num_heads: 2
    seq_len: 17
    head_dim: 40
    dtype: [fp32, fp16]
    mask: causal_bottom_right
    query_strides: [[1632, 816, 48, 1]]
    output_strides: [[1632, 816, 48, 1]]
  # ... and query, key and value side by side in one row of 3 * 2 * 40.
  - batch: 2
    num_heads: 2
    seq_len: 17
    head_dim: 40
    dtype: fp32
    mask: causal_top_left
    query_strides: [[4080, 40, 240, 1]]
    key_strides: [[4080, 40, 240, 1]]
    value_strides: [[4080, 40, 240, 1]]

  # A factor on the scores other than 1/sqrt(head_dim).
  - num_heads: 2
    seq_len: 33
    head_dim: 64
    dtype: [fp32, fp16]
    softmax_scale: [0.05, 1.0]
    mask: causal_bottom_right

  # A soft-cap bends the scores before the mask. A small cap shows a mask that
  # is applied too early.
  - num_heads: 4
    num_kv_heads: 2
    seq_len: [33, 70]
    head_dim: 64
    dtype: [fp32, fp16]
    softcap: [2, 50]
    mask: causal_bottom_right

  # ALiBi, with a number of heads that is no power of two, and in decode.
  - num_heads: 6
    seq_len_q: [1, 40]
    seq_len_kv: 40
    head_dim: 64
    dtype: [fp32, fp16]
    alibi_max_bias: 8
    mask: causal_bottom_right

  # Learned sinks: one per head, alone and with a window and a cap; softmax1 is
  # a sink of 0.
  - num_heads: 4
    num_kv_heads: 2
    seq_len_q: [1, 33]
    seq_len_kv: 33
    head_dim: 64
    dtype: [fp32, bf16]
    sinks: [[-1, 0.5, 2, 0]]
    mask: ["causal_bottom_right+sliding_window_keys(keys=8)"]
  - num_heads: 2
    seq_len: 33
    head_dim: 64
    dtype: [fp32, fp16]
    sinks: 0
    mask: causal_top_left
  - num_heads: 2
    seq_len: 33
    head_dim: 64
    dtype: fp32
    softcap: 20
    sinks: [[1, -1]]
    mask: causal_bottom_right
  - num_heads: 2
    seq_len: 33
    head_dim: 64
    dtype: fp32
    alibi_max_bias: 8
    sinks: [[1, -1]]
    mask: causal_bottom_right

  # The mask given as a tensor, in each form.
  - batch: 2
    num_heads: 2
    seq_len_q: [1, 20]
    seq_len_kv: 20
    head_dim: 64
    dtype: [fp32, fp16]
    mask_form: [boolean, inverted, additive]
    mask: ["causal_bottom_right+left_padding_keys(pad=0:3)"]

  # Multi-head latent attention: the value is the first channels of the key.
  - batch: 2
    num_heads: 4
    num_kv_heads: 1
    seq_len_q: [1, 20]
    seq_len_kv: 40
    head_dim_qk: 96
    head_dim_v: 64
    dtype: [fp32, bf16]
    value_in_key: true
    mask: causal_bottom_right

  # Sequences packed one behind another, one of them empty, with padding.
  - batch: 4
    num_heads: 4
    num_kv_heads: 2
    seq_len: [[17, 0, 5, 33]]
    head_dim: 64
    dtype: [fp32, fp16]
    packed: true
    packed_padding: [0, 7]
    layout: bshd
    mask: [full, causal_top_left, "sliding_window_keys(keys=4)"]
  - batch: 3
    num_heads: 2
    seq_len_q: [[4, 1, 9]]
    seq_len_kv: [[20, 33, 9]]
    head_dim: 64
    dtype: fp32
    packed: true
    layout: [bhsd, bshd]
    mask: causal_bottom_right

  # A paged cache: decode, chunked prefill beside decodes, a shared prefix.
  - batch: 3
    num_heads: 4
    num_kv_heads: 2
    seq_len_q: 1
    seq_len_kv: [[33, 16, 70]]
    head_dim: 64
    dtype: [fp32, fp16]
    block_size: [1, 16, 256]
    layout: [bshd, bhsd]
    mask: causal_bottom_right
  - batch: 3
    num_heads: 4
    num_kv_heads: 2
    seq_len_q: [[1, 12, 5]]
    seq_len_kv: [[40, 33, 21]]
    head_dim: 64
    dtype: [fp32, bf16]
    packed: true
    block_size: 8
    shared_prefix: [0, 16]
    layout: bshd
    mask: [causal_bottom_right, "causal_bottom_right+sliding_window_keys(keys=9)"]

  # More queries than keys: rows without a key, under each rule that engines
  # keep.
  - num_heads: 2
    seq_len_q: 20
    seq_len_kv: 9
    head_dim: 64
    dtype: [fp32, fp16]
    empty_row: [zero, any]
    mask: causal_bottom_right

  # Long contexts: few, since their cost grows with the square of the length.
  - num_heads: 2
    num_kv_heads: 1
    seq_len: 1024
    head_dim: 64
    dtype: [fp32, fp16]
    mask:
      - causal_top_left
      - "causal_bottom_right+sliding_window(left=255,right=0)"
  - num_heads: 1
    seq_len_q: [64, 2048]
    seq_len_kv: 2048
    head_dim: 64
    dtype: fp16
    mask: causal_bottom_right
  - num_heads: 1
    seq_len: 4096
    head_dim: 64
    dtype: fp32
    mask: causal_top_left

# Overrides for engines whose name matches the pattern; later ones win. Beside
# checks they take coverage and tolerances.
engines:
  # ggml's kernels multiply what lies in masked cells by a weight of 0, and
  # llama.cpp keeps its cache free of NaN: unused cells must hold finite
  # numbers. A cache that comes from elsewhere must be cleared first.
  "ggml:*":
    checks: {unused-slots-nan: warning}

  # ONNX Runtime's operators do the same with masked values.
  "onnxruntime:*":
    checks: {unused-slots-nan: warning}

  # So does LibTorch's unfused attention.
  "libtorch:*":
    checks: {unused-slots-nan: warning}
)yaml";
}

}  // namespace attnguard
