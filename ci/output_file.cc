#include "ci/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace attnguard {

namespace fs = std::filesystem;

namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

// What a killed run left has no lock; another file of this process has one.
bool remove_leftover(const std::string& name) {
  const int descriptor =
      ::open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool left = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                    ::unlink(name.c_str()) == 0;
  ::close(descriptor);
  return left;
}

int create_locked(const std::string& name) {
  int descriptor = ::open(name.c_str(), kFlags, 0666);
  if (descriptor < 0 && errno == EEXIST) {
    if (remove_leftover(name))
      descriptor = ::open(name.c_str(), kFlags, 0666);
    else
      errno = EEXIST;
  }
  if (descriptor >= 0) (void)::flock(descriptor, LOCK_EX | LOCK_NB);
  return descriptor;
}

}  // namespace

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::cannot_write() const {
  return {StatusCode::kIo, "cannot write the " + what_ + " to '" + path_ +
                               "': " + std::strerror(errno)};
}

Status OutputFile::open(const std::string& path, std::string_view what) {
  path_ = target_ = path;
  what_ = what;
  struct stat info = {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return cannot_write();
  }
  if (exists && !S_ISREG(info.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ < 0 ? cannot_write() : ok_status();
  }
  // A rename would replace a link, and a file that is write-protected.
  std::error_code ignored;
  const fs::path resolved = fs::weakly_canonical(path, ignored);
  if (!resolved.empty()) target_ = resolved.string();
  if (exists && ::access(path.c_str(), W_OK) != 0) return cannot_write();
  const std::string name = target_ + ".part-" + std::to_string(::getpid());
  descriptor_ = create_locked(name);
  if (descriptor_ < 0) return cannot_write();
  temporary_ = name;
  if (exists && ::fchmod(descriptor_, info.st_mode & 07777) != 0)
    return cannot_write();
  return ok_status();
}

Status OutputFile::commit(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_write();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  const bool closed = ::close(descriptor_) == 0;
  descriptor_ = -1;
  if (!closed) return cannot_write();
  if (temporary_.empty()) return ok_status();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    return {StatusCode::kIo, "cannot put the finished " + what_ +
                                 " in place of '" + path_ +
                                 "': " + std::strerror(errno)};
  temporary_.clear();
  return ok_status();
}

}  // namespace attnguard
