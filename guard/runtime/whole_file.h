// Writing a file so that nobody ever sees a part of it.
#ifndef ATTNGUARD_GUARD_RUNTIME_WHOLE_FILE_H_
#define ATTNGUARD_GUARD_RUNTIME_WHOLE_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "guard/base/status.h"

namespace attnguard {

// Writes the pieces to a temporary file in the same folder, waits until they
// are on disk, and gives it its name, which no file may have yet. Only the
// owner may read it. The folder is made when it is missing. On failure nothing
// stays behind; the message names the path and the reason.
Status write_whole_file(const std::string& path,
                        std::span<const std::span<const std::byte>> pieces);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_WHOLE_FILE_H_
