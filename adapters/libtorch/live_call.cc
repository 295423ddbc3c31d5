#include "adapters/libtorch/live_call.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace attnguard::libtorch {
namespace {

constexpr double kLambda = 5;  // Standard deviations, as in the bounds.

const Mask& top_left() {
  static const Mask mask = Mask::parse("causal_top_left").value();
  return mask;
}

std::optional<Dtype> dtype_of(Element element) {
  switch (element) {
    case Element::kFp64:
      return Dtype::kFp64;
    case Element::kFp32:
      return Dtype::kFp32;
    case Element::kFp16:
      return Dtype::kFp16;
    case Element::kBf16:
      return Dtype::kBf16;
    case Element::kBool:
      break;
  }
  return std::nullopt;
}

ConstTensorView view_of(const Tensor& tensor) {
  ConstTensorView view;
  view.data = static_cast<const std::byte*>(tensor.data);
  view.dtype = dtype_of(tensor.element).value_or(Dtype::kFp32);
  std::copy(tensor.shape, tensor.shape + 4, view.shape.begin());
  std::copy(tensor.strides, tensor.strides + 4, view.strides.begin());
  return view;
}

// An element; an axis of 1 stands for any.
double element_at(const Tensor& tensor, const Shape4& place) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < 4; ++i)
    offset += (tensor.shape[i] == 1 ? 0 : place[i]) * tensor.strides[i];
  const auto* bytes = static_cast<const std::byte*>(tensor.data);
  if (tensor.element == Element::kBool) return bytes[offset] != std::byte{0};
  const Dtype dtype = dtype_of(tensor.element).value_or(Dtype::kFp32);
  double value = 0;
  decode(dtype, bytes + offset * static_cast<std::int64_t>(dtype_size(dtype)),
         1, 1, &value);
  return value;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string place_text(std::int64_t batch, std::int64_t row) {
  return "batch " + std::to_string(batch) + ", query " + std::to_string(row);
}

bool fits(const SeenCall& seen) {
  const auto &q = seen.query.shape, &k = seen.key.shape, &v = seen.value.shape,
             &o = seen.output.shape;
  return q[0] == k[0] && k[0] == v[0] && o[0] == q[0] && k[1] == v[1] &&
         o[1] == q[1] && k[1] > 0 && q[1] % k[1] == 0 && q[2] == o[2] &&
         k[2] == v[2] && q[3] == k[3] && v[3] == o[3] && q[0] > 0 && q[2] > 0 &&
         k[2] > 0;
}

}  // namespace

std::string_view LiveCall::build(const SeenCall& seen, const LiveRule& rule) {
  seen_ = seen;
  if (seen.problem != nullptr) return seen.problem;
  if (seen.dropout != 0) return "dropout";
  if (!fits(seen)) return "shapes that are not one attention call's";
  const std::optional<Dtype> dtype = dtype_of(seen.query.element);
  if (!dtype || seen.key.element != seen.query.element ||
      seen.value.element != seen.query.element)
    return "element types that are not one attention call's";
  problem_.batch = seen.query.shape[0];
  problem_.num_heads = seen.query.shape[1];
  problem_.num_kv_heads = seen.key.shape[1];
  problem_.seq_len_q.assign(1, seen.query.shape[2]);
  problem_.seq_len_kv.assign(1, seen.key.shape[2]);
  problem_.head_dim_qk = seen.query.shape[3];
  problem_.head_dim_v = seen.value.shape[3];
  problem_.dtype = *dtype;
  problem_.empty_row = EmptyRow::kAny;  // Differs between releases.
  problem_.softmax_scale = rule.softmax_scale;
  if (!rule.softmax_scale && seen.scale != 0)
    problem_.softmax_scale = seen.scale;
  ruled_ = rule.mask.has_value();
  problem_.mask = ruled_ ? *rule.mask : seen.is_causal ? top_left() : Mask();
  call_ = {};
  call_.problem = &problem_;
  call_.query = view_of(seen.query);
  call_.key = view_of(seen.key);
  call_.value = view_of(seen.value);
  const ConstTensorView output = view_of(seen.output);
  call_.output = {const_cast<std::byte*>(output.data), output.dtype,
                  output.shape, output.strides};
  return describe_mask();
}

// Boolean: true may attend. Otherwise it is added: 0 may, -inf may not, and
// anything else is a bias.
std::string_view LiveCall::describe_mask() {
  const Tensor& mask = seen_.mask;
  if (mask.data == nullptr) return {};
  if (mask.shape[1] != 1 && mask.strides[1] != 0)
    return "a mask of its own for each head";
  const std::int64_t keys = problem_.max_len_kv();
  const std::int64_t queries = problem_.max_len_q();
  if ((mask.shape[0] != 1 && mask.shape[0] != problem_.batch) ||
      (mask.shape[1] != 1 && mask.shape[1] != problem_.num_heads) ||
      (mask.shape[3] != 1 && mask.shape[3] != keys) ||
      (mask.shape[2] != 1 && mask.shape[2] != queries))
    return "a mask of another shape";
  if (mask.element == Element::kBool) return {};
  for (std::int64_t b = 0; b < mask.shape[0]; ++b)
    for (std::int64_t i = 0; i < mask.shape[2]; ++i)
      for (std::int64_t j = 0; j < mask.shape[3]; ++j) {
        const double value = element_at(mask, {b, 0, i, j});
        if (value != 0 && !(std::isinf(value) && value < 0))
          return "a mask that is a bias";
      }
  return {};
}

bool LiveCall::shows(std::int64_t batch, std::int64_t row,
                     std::int64_t key) const {
  if (seen_.is_causal && key > row) return false;
  if (seen_.mask.data == nullptr) return true;
  const double value = element_at(seen_.mask, {batch, 0, row, key});
  return seen_.mask.element == Element::kBool ? value != 0 : value == 0;
}

ObserveContext LiveCall::context() const {
  ObserveContext context;
  if (!ruled_ && seen_.mask.data != nullptr) context.mask = this;
  return context;
}

void LiveCall::allowed(const RowPlace& row, KeyRanges& out) const {
  out.clear();
  for (std::int64_t j = 0; j < row.seq_len_kv; ++j)
    if (shows(row.batch, row.q_index, j)) out.append(j, j + 1);
}

std::optional<Finding> LiveCall::wrong_mask(std::uint64_t& judged) const {
  if (!ruled_ || (seen_.mask.data == nullptr && !seen_.is_causal)) return {};
  KeyRanges owed;
  for (std::int64_t b = 0; b < problem_.batch; ++b)
    for (std::int64_t i = 0; i < problem_.max_len_q(); ++i) {
      problem_.mask.allowed(problem_.row(b, i), owed);
      for (std::int64_t j = 0; j < problem_.max_len_kv(); ++j) {
        ++judged;
        const bool shown = shows(b, i, j);
        if (shown == owed.contains(j)) continue;
        Finding found = {
            .kind = shown ? FindingKind::kLeak : FindingKind::kMiss,
            .batch = b,
            .query = i,
            .key = j};
        found.message = place_text(b, i) + ": the mask " +
                        (shown ? "shows" : "hides") + " key " +
                        std::to_string(j) + ", against " + problem_.mask.text();
        return found;
      }
    }
  return {};
}

std::optional<Finding> LiveCall::wrong_weights(std::uint64_t& judged) const {
  const Tensor& weights = seen_.weights;
  const std::optional<Dtype> dtype = dtype_of(weights.element);
  if (weights.data == nullptr || !dtype || weights.shape[0] != problem_.batch ||
      weights.shape[1] != problem_.num_heads ||
      weights.shape[2] != problem_.max_len_q() ||
      weights.shape[3] != problem_.max_len_kv())
    return {};
  const double u = unit_roundoff(*dtype);
  for (std::int64_t b = 0; b < problem_.batch; ++b)
    for (std::int64_t h = 0; h < problem_.num_heads; ++h)
      for (std::int64_t i = 0; i < problem_.max_len_q(); ++i) {
        double sum = 0;
        std::int64_t seen = 0, hidden = -1;
        for (std::int64_t j = 0; j < problem_.max_len_kv(); ++j) {
          const double weight = element_at(weights, {b, h, i, j});
          const bool shown = shows(b, i, j);
          seen += shown;
          if (hidden < 0 && (shown ? !(weight >= 0) : weight != 0)) hidden = j;
          sum += weight;
        }
        ++judged;
        if (seen == 0) continue;  // By convention of the release.
        const double bound = 2 * u + kLambda *
                                         std::sqrt(static_cast<double>(seen)) *
                                         std::max(u, 0x1p-24);
        if (hidden < 0 && std::abs(sum - 1) <= bound) continue;
        Finding found = {.kind = FindingKind::kMass,
                         .batch = b,
                         .head = h,
                         .query = i,
                         .key = hidden};
        found.message =
            place_text(b, i) + ", head " + std::to_string(h) +
            (hidden >= 0 ? ": a weight on key " + std::to_string(hidden)
                         : ": weights sum to " + number(sum) + " instead of 1");
        if (hidden < 0) {
          found.observed = sum;
          found.expected = 1;
          found.bound = bound;
        }
        return found;
      }
  return {};
}

}  // namespace attnguard::libtorch
