#include "ci/run/text_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace attnguard {

Result<std::string> read_text_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return invalid_argument(path + ": is a folder, not a file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return Status(
        errno == ENOENT ? StatusCode::kNotFound : StatusCode::kInvalidArgument,
        path + ": " + std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) return invalid_argument(path + ": cannot be read");
  return text;
}

std::string digest_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace attnguard
