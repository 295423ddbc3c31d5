// ONNX Runtime's attention operators on the CPU, as engines for the command:
//
//   onnxruntime:attention                   the newest release that was fetched
//   onnxruntime:attention,version=1.26.0,opset=24
//   onnxruntime:group_query_attention,path=/opt/onnxruntime/lib,threads=1
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_ONNXRUNTIME_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_ONNXRUNTIME_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kOnnxRuntimeAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_ONNXRUNTIME_H_
