// Every operator, each defined in the file of its name.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_KERNEL_TABLE_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_KERNEL_TABLE_H_

#include "adapters/onnxruntime/kernel.h"

namespace attnguard::onnxruntime {

extern const Kernel kAttention;
extern const Kernel kMultiHeadAttention;
extern const Kernel kGroupQueryAttention;

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_KERNEL_TABLE_H_
