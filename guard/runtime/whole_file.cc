#include "guard/runtime/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace attnguard {
namespace {

// write(2) takes no more than this at once on Linux.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

std::string reason(int error) { return std::generic_category().message(error); }

// 0, or the error.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::write(descriptor, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return 0;
}

int write_pieces(int descriptor,
                 std::span<const std::span<const std::byte>> pieces) {
  for (const std::span<const std::byte>& piece : pieces)
    if (const int error = write_all(descriptor, piece); error != 0)
      return error;
  // What is no regular file cannot be synchronised; that is no failure.
  if (::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
    return errno;
  return 0;
}

// Gives the file its name; never replaces another. Where the file system has
// no links it is renamed. 0, or the error.
int give_name(const std::string& temporary, const std::string& path) {
  if (::link(temporary.c_str(), path.c_str()) == 0) {
    ::unlink(temporary.c_str());
    return 0;
  }
  if (errno == EEXIST) return EEXIST;
  return std::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Status write_whole_file(const std::string& path,
                        std::span<const std::span<const std::byte>> pieces) {
  const std::filesystem::path target(path);
  std::error_code failure;
  if (target.has_parent_path())
    std::filesystem::create_directories(target.parent_path(), failure);
  if (failure)
    return {StatusCode::kIo, "cannot make the folder " +
                                 target.parent_path().string() + ": " +
                                 failure.message()};
  const std::string temporary =
      (target.parent_path() / ("." + target.filename().string() + ".tmp"))
          .string();
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return {StatusCode::kIo,
            "cannot create " + temporary + ": " + reason(errno)};
  int error = write_pieces(descriptor, pieces);
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0) error = give_name(temporary, path);
  if (error == 0) return ok_status();
  ::unlink(temporary.c_str());
  return {StatusCode::kIo, "cannot write " + path + ": " + reason(error)};
}

}  // namespace attnguard
