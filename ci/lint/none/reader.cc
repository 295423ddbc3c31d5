// For builds without ONNX's library.
#include "ci/lint/reader.h"

namespace attnguard::lint {

bool has_reader() { return false; }

Result<std::shared_ptr<const Model>> read_model(const std::string& path) {
  return unsupported(path +
                     ": this build has no ONNX reader; install libonnx-dev "
                     "and libprotobuf-dev, and build again");
}

}  // namespace attnguard::lint
