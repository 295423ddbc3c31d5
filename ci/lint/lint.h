// Lints one ONNX file: reads it, finds its attention, runs the rules.
#ifndef ATTNGUARD_CI_LINT_LINT_H_
#define ATTNGUARD_CI_LINT_LINT_H_

#include <string>
#include <vector>

#include "ci/lint/rule.h"

namespace attnguard::lint {

struct FileResult {
  std::string file;
  Status status;  // Not ok: the file could not be read, and why.
  std::size_t plain = 0, fused = 0;  // Attentions seen.
  std::vector<Finding> findings;     // Notes last.
  std::vector<std::string> notes;    // Of the file as a whole.

  std::size_t violations() const;
};

FileResult lint_file(const std::string& path);

// The findings of a model; what lint_file does once it has read one.
FileResult lint_model(const Model& model);

// 0 clean, 1 findings, 2 a file could not be read, 4 a file without
// attention. Of several files the worst: 2, 1, 4, 0.
int exit_code(const std::vector<FileResult>& results);

std::string text_report(const std::vector<FileResult>& results);
std::string json_report(const std::vector<FileResult>& results);

// Workflow commands that GitHub shows as annotations.
std::string github_report(const std::vector<FileResult>& results);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_LINT_H_
