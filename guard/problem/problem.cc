#include "guard/problem/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "guard/base/text.h"

namespace attnguard {
namespace {

// Tensors above this many elements are refused: sizes stay far from overflow
// and a typing error does not take the machine down.
constexpr std::int64_t kMostElements = std::int64_t{1} << 36;

// Beyond these no kernel's scores are of any use.
constexpr double kLeastScale = 1e-12;
constexpr double kMostScale = 1e12;

// The axis order of each layout, slowest first, as indices into Shape4.
constexpr std::array<std::array<int, 4>, 3> kAxisOrder = {{
    {0, 1, 2, 3},  // BHSD
    {0, 2, 1, 3},  // BSHD
    {2, 0, 1, 3},  // SBHD
}};

Shape4 dense_strides(const Shape4& shape, Layout layout) {
  Shape4 strides = {0, 0, 0, 0};
  std::int64_t stride = 1;
  const auto& order = kAxisOrder[static_cast<std::size_t>(layout)];
  for (int i = 3; i >= 0; --i) {
    strides[order[i]] = stride;
    stride *= std::max<std::int64_t>(shape[order[i]], 1);
  }
  return strides;
}

std::int64_t extent_of(const Shape4& shape, const Shape4& strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < 4; ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return last + 1;
}

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
      return problem.value_strides;
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

Shape4 Problem::shape(TensorRole role) const {
  switch (role) {
    case TensorRole::kQuery:
      return {batch, num_heads, max_len_q(), head_dim_qk};
    case TensorRole::kKey:
      return {batch, num_kv_heads, max_len_kv(), head_dim_qk};
    case TensorRole::kValue:
      return {batch, num_kv_heads, max_len_kv(), head_dim_v};
    case TensorRole::kOutput:
      break;
  }
  return {batch, num_heads, max_len_q(), head_dim_v};
}

Shape4 Problem::strides(TensorRole role) const {
  const std::optional<Shape4>& given = override_of(*this, role);
  return given ? *given : dense_strides(shape(role), layout);
}

std::int64_t Problem::extent(TensorRole role) const {
  return extent_of(shape(role), strides(role));
}

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
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput})
    if (Status status = validate_strides(*this, role); !status.ok())
      return status;
  return mask.validate(*this);
}

}  // namespace attnguard
