// Reads an ONNX file into a Model.
#ifndef ATTNGUARD_CI_LINT_READER_H_
#define ATTNGUARD_CI_LINT_READER_H_

#include <memory>
#include <string>

#include "ci/lint/graph.h"

namespace attnguard::lint {

// False: this build has no ONNX library, and read_model always fails.
bool has_reader();

// kNotFound or kIo: no such file, or it cannot be read. kInvalidArgument: it
// is no ONNX model, or a broken one. kUnsupported: this build has no reader.
// Messages name the file. Weights stay in the file's memory, unread, until a
// rule asks for them.
Result<std::shared_ptr<const Model>> read_model(const std::string& path);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_READER_H_
