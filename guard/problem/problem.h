// One attention problem: everything that decides what a correct kernel must
// return, and the shape and layout of its tensors.
//
//   output[b, h, i, :] = sum_j softmax_j(scale * query[b, h, i, :] .
//                        key[b, g, j, :]) * value[b, g, j, :]
//
// over the keys j that the mask allows for row i, with g = h / group_size the
// KV head. Axes: b < batch, h < num_heads, g < num_kv_heads,
// i < seq_len_q of entry b, j < seq_len_kv of entry b; channels of query and
// key < head_dim_qk, of value and output < head_dim_v.
//
// A problem has a one-line text form, e.g.
//   batch=2 num_heads=8 num_kv_heads=2 seq_len_q=4 seq_len_kv=9,5
//   head_dim_qk=64 head_dim_v=64 dtype=fp16 mask=causal_bottom_right
// (one line). It is what findings replay with.
#ifndef ATTNGUARD_GUARD_PROBLEM_PROBLEM_H_
#define ATTNGUARD_GUARD_PROBLEM_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/dtype.h"
#include "guard/base/status.h"
#include "guard/base/tensor_view.h"
#include "guard/problem/mask/mask.h"

namespace attnguard {

// Order of the axes in memory, slowest first. B batch, H head, S position,
// D channel. In packed tensors B is dropped: kBhsd is [head, token, channel],
// the others [token, head, channel]. In paged ones B is the block: kBhsd is
// [block, head, token, channel], kBshd [block, token, head, channel].
enum class Layout { kBhsd, kBshd, kSbhd };

std::string_view layout_name(Layout layout);

// The tensors of a call. Query and output rows are queries, key and value
// rows are keys.
enum class TensorRole { kQuery, kKey, kValue, kOutput };

std::string_view tensor_role_name(TensorRole role);

// What a row with no allowed key must give.
enum class EmptyRow {
  kZero,  // FlashAttention, FlashInfer, PyTorch, ggml
  kNan,   // a plain softmax over -inf
  kMean,  // the mean of the entry's values: a finite sentinel under a softmax
  kAny,   // Nothing is promised; it must still be written.
};

std::string_view empty_row_name(EmptyRow rule);

// How the engine is told what is allowed.
enum class MaskForm {
  kImplied,   // By its own flags: it derives the mask from Problem::mask.
  kBoolean,   // A tensor of bytes, 1 = may attend (PyTorch SDPA, JAX, MLX).
  kInverted,  // A tensor of bytes, 1 = masked (key_padding_mask).
  kAdditive,  // A tensor of the inputs' dtype: 0 or -inf.
};

std::string_view mask_form_name(MaskForm form);

struct Problem {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;

  // One length for every batch entry, or one per entry (right padding). The
  // tensors are as long as the longest; slots past an entry's own length hold
  // nothing and are neither read nor judged. 0 is legal.
  std::vector<std::int64_t> seq_len_q = {16};
  std::vector<std::int64_t> seq_len_kv = {16};

  std::int64_t head_dim_qk = 64;
  std::int64_t head_dim_v = 64;

  Dtype dtype = Dtype::kFp32;      // of query, key and value
  std::optional<Dtype> out_dtype;  // of the output; absent: as dtype

  std::optional<double> softmax_scale;  // absent: 1 / sqrt(head_dim_qk)

  // Scores become softcap * tanh(score / softcap), after the scale and before
  // everything else. Absent: no cap.
  std::optional<double> softcap;

  // ALiBi: -slope * |distance| is added to the scores, after the cap. The
  // distance is that of the key from the query when the last query and the
  // last key are the same token; the slopes are those of the paper for
  // max_bias = 8 (see alibi_slope). Absent: none.
  std::optional<double> alibi_max_bias;

  // A learned logit in the denominator only: one for all heads, or one per
  // head. 0 is softmax1. Empty: none.
  std::vector<double> sinks;

  EmptyRow empty_row = EmptyRow::kZero;

  Mask mask;
  MaskForm mask_form = MaskForm::kImplied;

  // MLA: value is the first head_dim_v channels of key, in the same memory.
  bool value_in_key = false;

  Layout layout = Layout::kBhsd;

  // Queries, outputs and keys that are not paged lie one sequence after
  // another (cu_seqlens), with `packed_padding` unused tokens at the end.
  bool packed = false;
  std::int64_t packed_padding = 0;

  // Keys and values lie in blocks of this many tokens that a block_table
  // finds; 0: they do not. Blocks are shuffled, and a few belong to nobody.
  std::int64_t block_size = 0;

  // The first so many tokens of every entry are the same blocks.
  std::int64_t shared_prefix = 0;

  // Element strides [batch, head, position, channel] that override `layout`
  // for one tensor. No two elements may share an address: keys shared between
  // heads are said with num_kv_heads, not with stride 0.
  std::optional<Shape4> query_strides;
  std::optional<Shape4> key_strides;
  std::optional<Shape4> value_strides;
  std::optional<Shape4> output_strides;

  std::int64_t group_size() const { return num_heads / num_kv_heads; }
  std::int64_t kv_head_of(std::int64_t head) const {
    return head / group_size();
  }
  std::int64_t len_q(std::int64_t b) const {
    return seq_len_q[seq_len_q.size() == 1 ? 0 : b];
  }
  std::int64_t len_kv(std::int64_t b) const {
    return seq_len_kv[seq_len_kv.size() == 1 ? 0 : b];
  }
  std::int64_t max_len_q() const;
  std::int64_t max_len_kv() const;
  Dtype output_dtype() const { return out_dtype.value_or(dtype); }
  double scale() const;

  // The slope of a head's ALiBi; 0 without.
  double alibi_slope(std::int64_t head) const;
  double largest_alibi_slope() const;

  // The head's sink logit; -inf without.
  double sink(std::int64_t head) const;
  double largest_sink() const;  // 0 at least

  // The entry whose tensors hold the token: that of the shared prefix, or its
  // own.
  std::int64_t owner(std::int64_t b, std::int64_t kv_index) const {
    return kv_index < shared_prefix ? 0 : b;
  }

  // Positions of the key tensor, used or not.
  std::int64_t slots_kv() const { return shape(TensorRole::kKey)[2]; }

  // Channels of query and key that scores alone decide: all of them, unless
  // the first ones are the values too.
  std::int64_t score_channels() const {
    return value_in_key ? head_dim_qk - head_dim_v : head_dim_qk;
  }

  bool is_paged(TensorRole role) const {
    return block_size > 0 &&
           (role == TensorRole::kKey || role == TensorRole::kValue);
  }
  bool is_packed(TensorRole role) const { return packed && !is_paged(role); }

  RowPlace row(std::int64_t b, std::int64_t q_index) const {
    return {b, q_index, len_q(b), len_kv(b)};
  }

  // [batch, heads, longest length, channels]; of paged tensors the positions
  // are those of whole blocks.
  Shape4 shape(TensorRole role) const;

  // Of packed tensors strides[0] is strides[2]; of paged ones it steps from
  // block to block.
  Shape4 strides(TensorRole role) const;
  Dtype dtype_of(TensorRole role) const {
    return role == TensorRole::kOutput ? output_dtype() : dtype;
  }

  // Elements from the first to one past the last: what a buffer must hold.
  std::int64_t extent(TensorRole role) const;

  // Says what is wrong, naming the field and the fix.
  Status validate() const;

  // The canonical text form. Fields at their default are left out where the
  // default follows from others (out_dtype, softmax_scale, layout, strides).
  std::string text() const;

  // Parses text() or a hand-written line: `name=value` pieces separated by
  // blanks, in any order, each at most once. Shorthands: seq_len sets both
  // lengths, head_dim both dims, each instead of its parts; num_kv_heads
  // defaults to num_heads. The result is validated.
  static Result<Problem> parse(std::string_view text);

  friend bool operator==(const Problem&, const Problem&) = default;
};

// One named field of the text form. The table feeds the problem line, the
// policy's problem grid and the documentation.
struct ProblemField {
  std::string_view name;
  std::string_view help;

  // Sets the field from its text; the message says what was expected.
  Status (*set)(Problem& problem, std::string_view text);

  // The field's text, or empty when it is left out of the line. nullptr for
  // shorthands, which are never printed.
  std::string (*get)(const Problem& problem);
};

std::span<const ProblemField> all_problem_fields();

// nullptr when there is no such field.
const ProblemField* find_problem_field(std::string_view name);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_PROBLEM_H_
