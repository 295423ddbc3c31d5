#include "guard/problem/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "guard/base/text.h"
#include "guard/problem/placement.h"

namespace attnguard {
namespace {

// Tensors above this many elements are refused: sizes stay far from overflow
// and a typing error does not take the machine down.
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;

// Beyond these no kernel's scores are of any use.
constexpr double kLeastScale = 1e-12;
constexpr double kMostScale = 1e12;

// Distinct logical elements have distinct addresses: sorted by stride, each
// axis must step over everything the finer axes span.
bool strides_overlap(const Shape4& shape, const Shape4& strides) {
  std::array<int, 4> axes = {0, 1, 2, 3};
  std::sort(axes.begin(), axes.end(),
            [&](int a, int b) { return strides[a] < strides[b]; });
  std::int64_t span = 1;
  for (int axis : axes) {
    if (shape[axis] <= 1) continue;
    if (strides[axis] < span) return true;
    span += (shape[axis] - 1) * strides[axis];
  }
  return false;
}

const std::optional<Shape4>& override_of(const Problem& problem,
                                         TensorRole role) {
  switch (role) {
    case TensorRole::kQuery:
      return problem.query_strides;
    case TensorRole::kKey:
      return problem.key_strides;
    case TensorRole::kValue:
      return problem.value_in_key ? problem.key_strides : problem.value_strides;
    case TensorRole::kOutput:
      break;
  }
  return problem.output_strides;
}

Status at_least(std::string_view field, std::int64_t value,
                std::int64_t lowest) {
  if (value >= lowest) return ok_status();
  return invalid_argument(std::string(field) + "=" + std::to_string(value) +
                          ": must be at least " + std::to_string(lowest));
}

Status validate_lengths(const Problem& problem, std::string_view field,
                        const std::vector<std::int64_t>& lengths) {
  if (lengths.size() != 1 &&
      static_cast<std::int64_t>(lengths.size()) != problem.batch)
    return invalid_argument(
        std::string(field) + " has " + std::to_string(lengths.size()) +
        " lengths for batch=" + std::to_string(problem.batch) +
        ": give one length for all, or one per batch entry");
  for (std::int64_t length : lengths)
    if (Status status = at_least(field, length, 0); !status.ok()) return status;
  return ok_status();
}

Status validate_strides(const Problem& problem, TensorRole role) {
  const std::string name = std::string(tensor_role_name(role));
  const Shape4 shape = problem.shape(role);
  double elements = 1;
  // An empty axis does not make up for the others: strides span them all.
  for (std::int64_t size : shape)
    elements *= static_cast<double>(std::max<std::int64_t>(size, 1));
  if (elements > static_cast<double>(kMostElements))
    return invalid_argument(name + " would hold " + format_double(elements) +
                            " elements; the limit is 2^36");
  if (!override_of(problem, role)) return ok_status();
  if (problem.is_packed(role) || problem.is_paged(role))
    return invalid_argument(name +
                            "_strides: packed and paged tensors have the "
                            "strides of their layout; leave them out");
  const Shape4& strides = *override_of(problem, role);
  double last = 0;
  for (int axis = 0; axis < 4; ++axis) {
    if (strides[axis] < 0)
      return invalid_argument(name + "_strides: strides must not be negative");
    last +=
        static_cast<double>(shape[axis]) * static_cast<double>(strides[axis]);
  }
  if (last > static_cast<double>(kMostElements))
    return invalid_argument(name + "_strides span more than 2^36 elements");
  if (strides_overlap(shape, strides))
    return invalid_argument(
        name +
        "_strides: two elements share an address; say keys that several heads "
        "share with num_kv_heads instead of a stride of 0");
  return ok_status();
}

}  // namespace

std::string_view layout_name(Layout layout) {
  constexpr std::array<std::string_view, 3> kNames = {"bhsd", "bshd", "sbhd"};
  return kNames[static_cast<std::size_t>(layout)];
}

std::string_view tensor_role_name(TensorRole role) {
  constexpr std::array<std::string_view, 4> kNames = {"query", "key", "value",
                                                      "output"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view empty_row_name(EmptyRow rule) {
  constexpr std::array<std::string_view, 4> kNames = {"zero", "nan", "mean",
                                                      "any"};
  return kNames[static_cast<std::size_t>(rule)];
}

std::string_view mask_form_name(MaskForm form) {
  constexpr std::array<std::string_view, 4> kNames = {"implied", "boolean",
                                                      "inverted", "additive"};
  return kNames[static_cast<std::size_t>(form)];
}

std::int64_t Problem::max_len_q() const {
  return *std::max_element(seq_len_q.begin(), seq_len_q.end());
}

std::int64_t Problem::max_len_kv() const {
  return *std::max_element(seq_len_kv.begin(), seq_len_kv.end());
}

double Problem::scale() const {
  return softmax_scale.value_or(1.0 /
                                std::sqrt(static_cast<double>(head_dim_qk)));
}

double Problem::alibi_slope(std::int64_t head) const {
  if (!alibi_max_bias) return 0;
  // Press et al. 2022, as every engine computes it: a geometric sequence for
  // the largest power of two of heads, and every other step of the sequence
  // twice as fine for the heads that are left.
  std::int64_t power = 1;
  while (2 * power <= num_heads) power *= 2;
  const double step = *alibi_max_bias / static_cast<double>(power);
  return head < power ? std::exp2(-step * static_cast<double>(head + 1))
                      : std::exp2(-step / 2 *
                                  static_cast<double>(2 * (head - power) + 1));
}

double Problem::largest_alibi_slope() const {
  double largest = 0;
  if (!alibi_max_bias) return largest;
  for (std::int64_t h = 0; h < num_heads; ++h)
    largest = std::max(largest, alibi_slope(h));
  return largest;
}

double Problem::sink(std::int64_t head) const {
  if (sinks.empty()) return -std::numeric_limits<double>::infinity();
  return sinks[sinks.size() == 1 ? 0 : static_cast<std::size_t>(head)];
}

double Problem::largest_sink() const {
  double largest = 0;
  for (double sink : sinks) largest = std::max(largest, sink);
  return largest;
}

Shape4 Problem::shape(TensorRole role) const {
  const bool paged = is_paged(role);
  const std::int64_t len_kv =
      paged ? (max_len_kv() + block_size - 1) / block_size * block_size
            : max_len_kv();
  switch (role) {
    case TensorRole::kQuery:
      return {batch, num_heads, max_len_q(), head_dim_qk};
    case TensorRole::kKey:
      return {batch, num_kv_heads, len_kv, head_dim_qk};
    case TensorRole::kValue:
      return {batch, num_kv_heads, len_kv, head_dim_v};
    case TensorRole::kOutput:
      break;
  }
  return {batch, num_heads, max_len_q(), head_dim_v};
}

Shape4 Problem::strides(TensorRole role) const {
  const std::optional<Shape4>& given = override_of(*this, role);
  return given ? *given : layout_strides(*this, role);
}

std::int64_t Problem::extent(TensorRole role) const {
  return tensor_extent(*this, role);
}

namespace {

Status validate_modifiers(const Problem& problem) {
  if (problem.softcap && !(*problem.softcap > 0 && *problem.softcap <= 1e6))
    return invalid_argument("softcap must be a number above 0, at most 1e6");
  if (problem.alibi_max_bias &&
      !(*problem.alibi_max_bias > 0 && *problem.alibi_max_bias <= 64))
    return invalid_argument(
        "alibi_max_bias must be a number above 0, at most 64; the paper's "
        "slopes have 8");
  if (problem.sinks.size() > 1 &&
      static_cast<std::int64_t>(problem.sinks.size()) != problem.num_heads)
    return invalid_argument(
        "sinks has " + std::to_string(problem.sinks.size()) +
        " logits for num_heads=" + std::to_string(problem.num_heads) +
        ": give one for all heads, or one per head");
  for (double sink : problem.sinks)
    if (!(std::abs(sink) <= 100))
      return invalid_argument("sinks must be numbers from -100 to 100");
  return ok_status();
}

Status validate_placement(const Problem& problem) {
  if (problem.value_in_key && problem.head_dim_v >= problem.head_dim_qk)
    return invalid_argument(
        "value_in_key needs head_dim_v < head_dim_qk: the value is the first "
        "channels of the key");
  if (problem.value_in_key && problem.value_strides)
    return invalid_argument(
        "value_strides: with value_in_key the value lies in the key tensor; "
        "leave them out");
  if (Status status = at_least("packed_padding", problem.packed_padding, 0);
      !status.ok())
    return status;
  if (problem.packed_padding > 0 && !problem.packed)
    return invalid_argument("packed_padding needs packed=true");
  if (Status status = at_least("block_size", problem.block_size, 0);
      !status.ok())
    return status;
  const double tokens =
      static_cast<double>(problem.packed_padding) +
      static_cast<double>(problem.batch) *
          static_cast<double>(problem.max_len_q() + problem.max_len_kv());
  if ((problem.packed || problem.block_size > 0) && tokens > 2e9)
    return invalid_argument(
        "packed and paged tensors hold at most 2e9 tokens: cu_seqlens and "
        "block_table are int32");
  if (problem.block_size > 4096)
    return invalid_argument("block_size must be at most 4096 tokens");
  if (problem.block_size > 0 && problem.layout == Layout::kSbhd)
    return invalid_argument(
        "layout=sbhd has no paged form; use bhsd (heads before tokens in a "
        "block) or bshd");
  if (Status status = at_least("shared_prefix", problem.shared_prefix, 0);
      !status.ok())
    return status;
  if (problem.shared_prefix == 0) return ok_status();
  if (problem.block_size == 0)
    return invalid_argument(
        "shared_prefix needs block_size: only blocks can be shared");
  if (problem.shared_prefix % problem.block_size != 0)
    return invalid_argument(
        "shared_prefix=" + std::to_string(problem.shared_prefix) +
        " is not a multiple of block_size=" +
        std::to_string(problem.block_size));
  for (std::int64_t length : problem.seq_len_kv)
    if (length < problem.shared_prefix)
      return invalid_argument(
          "shared_prefix=" + std::to_string(problem.shared_prefix) +
          " is longer than a sequence of " + std::to_string(length) + " keys");
  return ok_status();
}

}  // namespace

Status Problem::validate() const {
  for (const auto& [field, value] :
       {std::pair<std::string_view, std::int64_t>{"batch", batch},
        {"num_heads", num_heads},
        {"num_kv_heads", num_kv_heads},
        {"head_dim_qk", head_dim_qk},
        {"head_dim_v", head_dim_v}})
    if (Status status = at_least(field, value, 1); !status.ok()) return status;
  if (num_heads % num_kv_heads != 0)
    return invalid_argument(
        "num_heads=" + std::to_string(num_heads) +
        " is not a multiple of num_kv_heads=" + std::to_string(num_kv_heads) +
        ": every KV head must serve the same number of heads");
  if (Status status = validate_lengths(*this, "seq_len_q", seq_len_q);
      !status.ok())
    return status;
  if (Status status = validate_lengths(*this, "seq_len_kv", seq_len_kv);
      !status.ok())
    return status;
  if (softmax_scale &&
      !(*softmax_scale >= kLeastScale && *softmax_scale <= kMostScale))
    return invalid_argument(
        "softmax_scale must be a number from 1e-12 to 1e12");
  if (Status status = validate_modifiers(*this); !status.ok()) return status;
  if (Status status = validate_placement(*this); !status.ok()) return status;
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput})
    if (Status status = validate_strides(*this, role); !status.ok())
      return status;
  return mask.validate(*this);
}

}  // namespace attnguard
