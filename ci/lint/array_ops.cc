#include "ci/lint/array_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attnguard::lint {
namespace {

constexpr std::int64_t kMost = Evaluator::kMostElements;

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t one = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t two = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (one != two && one != 1 && two != 1) return std::nullopt;
    dims[dims.size() - 1 - i] = one == 1 ? two : one;
  }
  if (!elements_of(dims, kMost)) return std::nullopt;
  return dims;
}

// Steps through the elements of `dims` in order; for each, the place in an
// array that is broadcast to them.
class Walk {
 public:
  Walk(const Dims& dims, const Dims& of) : dims_(dims), at_(dims.size(), 0) {
    strides_.assign(dims.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const std::int64_t dim = of[of.size() - 1 - i];
      strides_[dims.size() - 1 - i] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }
  std::size_t place() const { return static_cast<std::size_t>(place_); }
  void next() {
    for (std::size_t i = dims_.size(); i-- > 0;) {
      place_ += strides_[i];
      if (++at_[i] < dims_[i]) return;
      place_ -= strides_[i] * dims_[i];
      at_[i] = 0;
    }
  }

 private:
  const Dims& dims_;
  Dims at_, strides_;
  std::int64_t place_ = 0;
};

using Binary = double (*)(double, double);

struct BinaryOp {
  std::string_view name;
  Binary function;
  bool logical;
};

constexpr BinaryOp kBinary[] = {
    {"Add", [](double a, double b) { return a + b; }, false},
    {"Sub", [](double a, double b) { return a - b; }, false},
    {"Mul", [](double a, double b) { return a * b; }, false},
    {"Div", [](double a, double b) { return a / b; }, false},
    {"Min", [](double a, double b) { return std::min(a, b); }, false},
    {"Max", [](double a, double b) { return std::max(a, b); }, false},
    {"And", [](double a, double b) { return double(a != 0 && b != 0); }, true},
    {"Or", [](double a, double b) { return double(a != 0 || b != 0); }, true},
    {"Xor", [](double a, double b) { return double((a != 0) != (b != 0)); },
     true},
    {"Equal", [](double a, double b) { return double(a == b); }, true},
    {"Less", [](double a, double b) { return double(a < b); }, true},
    {"Greater", [](double a, double b) { return double(a > b); }, true},
    {"LessOrEqual", [](double a, double b) { return double(a <= b); }, true},
    {"GreaterOrEqual", [](double a, double b) { return double(a >= b); }, true},
};

}  // namespace

ArrayPtr filled(int type, Dims dims, double value) {
  const auto count = elements_of(dims, kMost);
  if (!count) return nullptr;
  return std::make_shared<Array>(
      Array{type, std::move(dims),
            std::vector<double>(static_cast<std::size_t>(*count), value)});
}

ArrayPtr binary_op(const std::string& op, const Array& a, const Array& b) {
  const auto* known = std::find_if(std::begin(kBinary), std::end(kBinary),
                                   [&](const auto& k) { return k.name == op; });
  const auto dims = broadcast(a.dims, b.dims);
  if (known == std::end(kBinary) || !dims) return nullptr;
  auto made = std::make_shared<Array>(
      Array{known->logical ? kBool : a.type, *dims, {}});
  const auto count = static_cast<std::size_t>(*elements_of(*dims, kMost));
  made->values.reserve(count);
  Walk left(*dims, a.dims), right(*dims, b.dims);
  for (std::size_t i = 0; i < count; ++i, left.next(), right.next()) {
    const double one = a.values[left.place()], two = b.values[right.place()];
    // Unknown stays unknown, in comparisons too.
    made->values.push_back(
        std::isnan(one) || std::isnan(two)
            ? std::nan("")
            : as_type(known->function(one, two), made->type));
  }
  return made;
}

ArrayPtr where_op(const Array& condition, const Array& a, const Array& b) {
  const auto both = broadcast(a.dims, b.dims);
  const auto dims = both ? broadcast(condition.dims, *both) : std::nullopt;
  if (!dims) return nullptr;
  auto made = std::make_shared<Array>(Array{a.type, *dims, {}});
  const auto count = static_cast<std::size_t>(*elements_of(*dims, kMost));
  made->values.reserve(count);
  Walk choice(*dims, condition.dims), one(*dims, a.dims), two(*dims, b.dims);
  for (std::size_t i = 0; i < count; ++i) {
    const double which = condition.values[choice.place()];
    made->values.push_back(std::isnan(which) ? which
                           : which != 0      ? a.values[one.place()]
                                             : b.values[two.place()]);
    choice.next(), one.next(), two.next();
  }
  return made;
}

ArrayPtr transpose_op(const Array& a, const std::vector<std::int64_t>& perm) {
  std::vector<std::int64_t> order = perm;
  if (order.empty())
    for (std::int64_t i = a.rank(); i-- > 0;) order.push_back(i);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (order.size() != a.dims.size()) return nullptr;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i)) return nullptr;
  Dims strides(a.dims.size(), 1);
  for (std::size_t i = a.dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * a.dims[i];
  auto made = std::make_shared<Array>(Array{a.type, {}, {}});
  for (std::int64_t axis : order)
    made->dims.push_back(a.dims[static_cast<std::size_t>(axis)]);
  made->values.reserve(a.values.size());
  Dims at(order.size(), 0);
  for (std::size_t n = 0; n < a.values.size(); ++n) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      place += at[i] * strides[static_cast<std::size_t>(order[i])];
    made->values.push_back(a.values[static_cast<std::size_t>(place)]);
    for (std::size_t i = order.size(); i-- > 0;) {
      if (++at[i] < made->dims[i]) break;
      at[i] = 0;
    }
  }
  return made;
}

ArrayPtr trilu_op(const Array& a, bool upper, std::int64_t diagonal) {
  if (a.rank() < 2) return nullptr;
  const std::int64_t columns = a.dims.back();
  const std::int64_t rows = a.dims[a.dims.size() - 2];
  auto made = std::make_shared<Array>(a);
  for (std::size_t i = 0; i < made->values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) % (rows * columns);
    const std::int64_t distance = place % columns - place / columns;
    if (upper ? distance < diagonal : distance > diagonal) made->values[i] = 0;
  }
  return made;
}

ArrayPtr expand_op(const Array& a, const Dims& dims) {
  const auto both = broadcast(a.dims, dims);
  if (!both) return nullptr;
  auto made = std::make_shared<Array>(Array{a.type, *both, {}});
  const auto count = static_cast<std::size_t>(*elements_of(*both, kMost));
  made->values.reserve(count);
  Walk walk(*both, a.dims);
  for (std::size_t i = 0; i < count; ++i, walk.next())
    made->values.push_back(a.values[walk.place()]);
  return made;
}

ArrayPtr reshape_op(const Array& a, Dims dims) {
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && i < a.dims.size()) dims[i] = a.dims[i];
    if (dims[i] == -1 && !open) {
      open = i;
      continue;
    }
    if (dims[i] <= 0 || known > kMost / dims[i]) return nullptr;
    known *= dims[i];
  }
  const auto count = static_cast<std::int64_t>(a.values.size());
  if (open) dims[*open] = count / known;
  if (elements_of(dims, kMost) != count) return nullptr;
  return std::make_shared<Array>(Array{a.type, std::move(dims), a.values});
}

namespace {

// Elements first, first + 1 ... last - 1 of one axis.
Array slice_axis(const Array& a, std::size_t axis, std::int64_t first,
                 std::int64_t last) {
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < a.dims.size(); ++i) inner *= a.dims[i];
  Array made{a.type, a.dims, {}};
  made.dims[axis] = last - first;
  const std::int64_t block = a.dims[axis] * inner;
  if (block == 0) return made;
  const auto blocks = static_cast<std::int64_t>(a.values.size()) / block;
  for (std::int64_t n = 0; n < blocks; ++n)
    made.values.insert(made.values.end(),
                       a.values.begin() + n * block + first * inner,
                       a.values.begin() + n * block + last * inner);
  return made;
}

}  // namespace

ArrayPtr slice_op(const Array& a, const Array& starts, const Array& ends,
                  const Array* axes, const Array* steps) {
  const std::size_t count = starts.values.size();
  if (ends.values.size() != count ||
      (axes != nullptr && axes->values.size() != count) ||
      (steps != nullptr && !(steps->uniform() && steps->values[0] == 1)))
    return nullptr;
  Array made = a;
  for (std::size_t i = 0; i < count; ++i) {
    double axis = axes != nullptr ? axes->values[i] : static_cast<double>(i);
    if (axis < 0) axis += static_cast<double>(a.rank());
    if (!(axis >= 0 && axis < static_cast<double>(a.rank()))) return nullptr;
    const auto at = static_cast<std::size_t>(axis);
    const auto size = static_cast<double>(made.dims[at]);
    const auto bound = [size](double place) {
      return static_cast<std::int64_t>(
          std::clamp(place < 0 ? place + size : place, 0.0, size));
    };
    const std::int64_t first = bound(starts.values[i]);
    made = slice_axis(made, at, first, std::max(first, bound(ends.values[i])));
  }
  return std::make_shared<Array>(std::move(made));
}

ArrayPtr gather_op(const Array& vector, const Array& indices) {
  if (vector.rank() != 1 || indices.rank() > 1) return nullptr;
  auto made = std::make_shared<Array>(Array{vector.type, indices.dims, {}});
  const auto size = static_cast<double>(vector.values.size());
  for (double index : indices.values) {
    if (index < 0) index += size;
    if (!(index >= 0 && index < size)) return nullptr;
    made->values.push_back(vector.values[static_cast<std::size_t>(index)]);
  }
  return made;
}

}  // namespace attnguard::lint
