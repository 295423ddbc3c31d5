// An ONNX file: it ends in findings or in an error, and both can be reported.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "ci/lint/lint.h"
#include "tests/fuzz/target.h"

using namespace attnguard;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A file that has no place on a disk: the reader takes paths.
  static const int file = memfd_create("model.onnx", 0);
  require(file >= 0, "no memory for the file");
  require(ftruncate(file, 0) == 0, "the file cannot be emptied");
  require(pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
          "the file cannot be written");
  const lint::FileResult result =
      lint::lint_file("/proc/self/fd/" + std::to_string(file));
  if (!result.status.ok())
    require(!result.status.message().empty(), "an error without a message");
  require(!lint::json_report({result}).empty(), "a report without a word");
  // Files that could not be read are the command's to report.
  require(!result.status.ok() || !lint::text_report({result}).empty(),
          "a file without a word");
  static_cast<void>(lint::github_report({result}));
  return 0;
}
