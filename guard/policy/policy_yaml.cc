#include "guard/policy/policy_yaml.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "guard/base/status.h"
#include "guard/policy/policy_reader.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestPolicy = std::size_t{4} << 20;  // bytes
constexpr std::size_t kMostFiles = 16;  // of a chain of `extends`
constexpr std::string_view kTooLarge =
    "the policy is larger than 4 MiB; split it";

// Of the file as a whole, which need not have a line.
PolicyParse failure(std::string_view name, std::string message) {
  PolicyParse parse;
  parse.diagnostics.push_back(
      {{std::string(name), 0, 0}, std::move(message), ""});
  return parse;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status io_error(const std::string& doing) {
  return {StatusCode::kIo,
          doing + " the policy: " + std::generic_category().message(errno)};
}

// At most one byte more than kLargestPolicy: the caller sees that it is too
// much.
Result<std::string> read_text(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return invalid_argument("this is a directory; give a policy file");
  const std::unique_ptr<std::FILE, FileCloser> file(
      std::fopen(path.c_str(), "rb"));
  if (!file) return io_error("cannot open");
  std::string text(kLargestPolicy + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) return io_error("cannot read");
  return text;
}

// One policy and those that it extends.
class Loader {
 public:
  explicit Loader(std::span<const std::string_view> check_ids)
      : check_ids_(check_ids) {}

  PolicyParse parse(std::string_view text, std::string_view name) {
    PolicyParse result;
    result.policy = parse_one(text, name);
    result.diagnostics = std::move(diagnostics_);
    return result;
  }

 private:
  // Adds to diagnostics_, those of the extended policy first.
  std::optional<Policy> parse_one(std::string_view text,
                                  std::string_view name) {
    chain_.emplace_back(name);
    const SourceText source(text, name);
    DiagnosticSink sink(source);
    std::optional<Policy> made;
    if (check_encoding(source, sink)) {
      std::optional<YamlNode> root = read_yaml(source, sink);
      if (!root && sink.empty()) root.emplace();  // No document: empty.
      const LoadBase load_base = [this](const std::string& written,
                                        std::string& problem) {
        return load(written, problem);
      };
      if (root) made = read_policy(*root, source, check_ids_, load_base, sink);
    }
    if (!sink.empty()) made.reset();
    std::ranges::move(sink.take(), std::back_inserter(diagnostics_));
    chain_.pop_back();
    return made;
  }

  // " (a.yaml -> b.yaml)"
  std::string chain_text(const std::string& last) const {
    std::string text = " (";
    for (const std::string& name : chain_) text += name + " -> ";
    return text + last + ')';
  }

  std::optional<Policy> load(const std::string& written, std::string& problem) {
    const bool built_in = written == Policy().name;
    const std::string path = built_in ? written : beside_current(written);
    Result<std::string> text =
        built_in ? std::string(default_policy_text()) : load_text(path);
    problem = text.ok() ? "" : text.status().message();
    if (text.ok() && text.value().size() > kLargestPolicy) problem = kTooLarge;
    if (problem.empty()) {
      auto base = parse_one(text.value(), path);
      if (base) return base;
      problem = "'" + path + "' has errors of its own";
    }
    problem += chain_text(path);
    return std::nullopt;
  }

  Result<std::string> load_text(const std::string& path) const {
    if (chain_.size() >= kMostFiles)
      return invalid_argument("more than " + std::to_string(kMostFiles) +
                              " policies extend each other");
    if (path.find('\0') != std::string::npos)
      return invalid_argument("a file name holds no zero byte");
    std::error_code error;
    for (const std::string& name : chain_)
      if (fs::equivalent(name, path, error) ||
          fs::path(name).lexically_normal() ==
              fs::path(path).lexically_normal())
        return invalid_argument("the policies extend each other in a circle");
    // A pipe could keep us waiting for ever.
    if (fs::exists(path, error) && !fs::is_directory(path, error) &&
        !fs::is_regular_file(path, error))
      return invalid_argument("this is no regular file");
    return read_text(path);
  }

  // Relative to the file that is being read.
  std::string beside_current(const std::string& written) const {
    const fs::path folder = fs::path(chain_.back()).parent_path();
    return (folder / written).lexically_normal().string();
  }

  std::span<const std::string_view> check_ids_;
  std::vector<std::string> chain_;  // Names, the outermost first.
  std::vector<PolicyDiagnostic> diagnostics_;
};

}  // namespace

PolicyParse parse_policy(std::string_view text, std::string_view name,
                         std::span<const std::string_view> check_ids) {
  try {
    if (text.size() > kLargestPolicy)
      return failure(name, std::string(kTooLarge));
    return Loader(check_ids).parse(text, name);
  } catch (const std::exception& error) {
    return failure(name,
                   "the policy cannot be read: " + std::string(error.what()));
  }
}

PolicyParse load_policy(const std::string& path,
                        std::span<const std::string_view> check_ids) {
  try {
    const Result<std::string> text = read_text(path);
    if (!text.ok()) return failure(path, text.status().message());
    return parse_policy(text.value(), path, check_ids);
  } catch (const std::exception& error) {
    return failure(path,
                   "the policy cannot be read: " + std::string(error.what()));
  }
}

Result<std::string> read_policy_text(const std::string& path) {
  Result<std::string> text = read_text(path);
  if (text.ok() && text.value().size() > kLargestPolicy)
    return invalid_argument(std::string(kTooLarge));
  return text;
}

}  // namespace attnguard
