#include "guard/policy/policy_yaml.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "guard/policy/policy_reader.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {
namespace {

constexpr std::size_t kLargestFile = std::size_t{4} << 20;  // bytes

PolicyParse failure(std::string_view name, std::string message) {
  PolicyParse parse;
  parse.diagnostics.push_back(
      {{std::string(name), 1, 1}, std::move(message), ""});
  return parse;
}

PolicyParse parse_source(const SourceText& source,
                         std::span<const std::string_view> check_ids) {
  PolicyParse parse;
  DiagnosticSink sink(source);
  if (check_encoding(source, sink)) {
    std::optional<YamlNode> root = read_yaml(source, sink);
    if (!root && sink.empty()) root.emplace();  // No document: empty.
    if (root) {
      Policy policy = read_policy(*root, source, check_ids, sink);
      if (sink.empty()) parse.policy = std::move(policy);
    }
  }
  parse.diagnostics = sink.take();
  return parse;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

PolicyParse read_and_parse(const std::string& path,
                           std::span<const std::string_view> check_ids) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return failure(path, "this is a directory; give a policy file");
  const std::unique_ptr<std::FILE, FileCloser> file(
      std::fopen(path.c_str(), "rb"));
  if (!file)
    return failure(path, "cannot open the policy: " +
                             std::generic_category().message(errno));
  std::string text(kLargestFile + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()))
    return failure(path, "cannot read the policy: " +
                             std::generic_category().message(errno));
  return parse_policy(text, path, check_ids);
}

}  // namespace

PolicyParse parse_policy(std::string_view text, std::string_view name,
                         std::span<const std::string_view> check_ids) {
  try {
    if (text.size() > kLargestFile)
      return failure(name, "the policy is larger than 4 MiB; split it");
    return parse_source(SourceText(text, name), check_ids);
  } catch (const std::exception& error) {
    return failure(name,
                   "the policy cannot be read: " + std::string(error.what()));
  }
}

PolicyParse load_policy(const std::string& path,
                        std::span<const std::string_view> check_ids) {
  try {
    return read_and_parse(path, check_ids);
  } catch (const std::exception& error) {
    return failure(path,
                   "the policy cannot be read: " + std::string(error.what()));
  }
}

}  // namespace attnguard
