// A product of two tensors that sums over one axis, as MatMul does.
#ifndef ATTNGUARD_CI_LINT_CONTRACTION_H_
#define ATTNGUARD_CI_LINT_CONTRACTION_H_

#include "ci/lint/attention.h"

namespace attnguard::lint {

bool is_contraction(const Node& node);

// Axes of the weights when they are input `operand` of the product with the
// values: it sums over keys, and what remains are queries. Unknown (0) where
// an Einsum does something else.
Axes weight_axes(const Node& node, std::size_t operand);

// Which input of the score product has the keys, when they are axis
// `key_axis` of its output; nullopt: neither.
std::optional<std::size_t> key_operand(const Node& node, int key_axis);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_CONTRACTION_H_
