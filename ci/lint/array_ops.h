// ONNX operators on arrays. Each gives null where the operands do not fit.
#ifndef ATTNGUARD_CI_LINT_ARRAY_OPS_H_
#define ATTNGUARD_CI_LINT_ARRAY_OPS_H_

#include "ci/lint/evaluate.h"

namespace attnguard::lint {

// Add, Sub, Mul, Div, Min, Max, And, Or, Xor and comparisons, broadcast.
ArrayPtr binary_op(const std::string& op, const Array& a, const Array& b);
ArrayPtr where_op(const Array& condition, const Array& a, const Array& b);
ArrayPtr transpose_op(const Array& a, const std::vector<std::int64_t>& perm);
ArrayPtr trilu_op(const Array& a, bool upper, std::int64_t diagonal);
ArrayPtr expand_op(const Array& a, const Dims& dims);
ArrayPtr reshape_op(const Array& a, Dims dims);
ArrayPtr slice_op(const Array& a, const Array& starts, const Array& ends,
                  const Array* axes, const Array* steps);

// Along axis 0 of a vector.
ArrayPtr gather_op(const Array& vector, const Array& indices);

ArrayPtr filled(int type, Dims dims, double value);

// One pass over all elements; the type becomes `type`.
template <typename Function>
ArrayPtr map_op(const Array& a, int type, Function function) {
  auto made = std::make_shared<Array>(Array{type, a.dims, a.values});
  for (double& value : made->values) value = function(value);
  return made;
}

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_ARRAY_OPS_H_
