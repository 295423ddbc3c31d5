// `attnguard lint`: what is wrong with the attention of an ONNX file, without
// running it.
#include <ostream>

#include "ci/command_table.h"
#include "ci/lint/lint.h"
#include "ci/lint/reader.h"
#include "ci/usage.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

struct Format {
  std::string_view name;
  std::string (*render)(const std::vector<lint::FileResult>& results);
};

constexpr Format kLintFormats[] = {{"text", lint::text_report},
                                   {"json", lint::json_report},
                                   {"github", lint::github_report}};

int run_lint(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  if (arguments.operands.empty())
    return usage_error(err, "lint which file?",
                       "write 'attnguard lint FILE.onnx'");
  if (!lint::has_reader())
    return usage_error(err, "this build has no ONNX reader",
                       "install libonnx-dev, libprotobuf-dev and "
                       "protobuf-compiler, and build again");
  const std::string name = arguments.value("--format").value_or("text");
  const Format* format = nullptr;
  std::vector<std::string_view> names;
  for (const Format& known : kLintFormats) {
    names.push_back(known.name);
    if (known.name == name) format = &known;
  }
  if (format == nullptr)
    return usage_error(
        err, "--format: unknown '" + name + "'" + suggestion(name, names));
  std::vector<lint::FileResult> results;
  for (const std::string& file : arguments.operands)
    results.push_back(lint::lint_file(file));
  for (const lint::FileResult& result : results)
    if (!result.status.ok()) usage_error(err, result.status.message());
  out << format->render(results);
  return lint::exit_code(results);
}

}  // namespace

extern const CommandInfo kLintCommand = {
    .path = "lint",
    .summary = "Find wrong attention in ONNX files",
    .operand = {"files", "ONNX files; none is run", true},
    .options = {{"--format", "text|json|github", "Of the report"}},
    .run = run_lint,
};

}  // namespace attnguard
