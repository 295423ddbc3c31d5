// The module that holds LibTorch's side, found beside the command.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_MODULE_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_MODULE_H_

#include <string>

#include "adapters/libtorch/kernel.h"
#include "adapters/libtorch/recorder.h"
#include "guard/base/status.h"

namespace attnguard::libtorch {

// `path`: the module's file; empty: where the build or the installation put
// it. It stays loaded until the process ends. kNotFound: there is none, or
// LibTorch's own libraries are missing; kInvalidArgument: it is another file,
// or of another build.
Result<const Kernel*> load_kernel(const std::string& path);
Result<const Recorder*> load_recorder(const std::string& path);

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_MODULE_H_
