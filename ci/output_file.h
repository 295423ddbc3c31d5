// Where a report, a baseline, a policy or the like is written: whole or not at
// all, and known to be writable before the run that may take hours.
#ifndef ATTNGUARD_CI_OUTPUT_FILE_H_
#define ATTNGUARD_CI_OUTPUT_FILE_H_

#include <string>
#include <string_view>

#include "guard/base/status.h"

namespace attnguard {

class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Creates a temporary file beside `path`; `path` itself stays as it is.
  // What is not a regular file (a pipe, /dev/null) is opened directly.
  // `what` is written, as messages call it: "report".
  Status open(const std::string& path, std::string_view what);

  // Writes the text and puts the file in its place. Called at most once.
  Status commit(std::string_view text);

 private:
  Status cannot_write() const;  // As errno says.

  std::string path_;       // As given, for messages.
  std::string what_;       // "report"
  std::string target_;     // Behind symbolic links.
  std::string temporary_;  // Empty when target_ is written directly.
  int descriptor_ = -1;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_OUTPUT_FILE_H_
