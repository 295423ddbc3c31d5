// Small text files as a whole.
#ifndef ATTNGUARD_CI_RUN_TEXT_FILE_H_
#define ATTNGUARD_CI_RUN_TEXT_FILE_H_

#include <string>
#include <string_view>

#include "guard/base/status.h"

namespace attnguard {

// kNotFound, or kInvalidArgument for what is no readable file.
Result<std::string> read_text_file(const std::string& path);

// FNV-1a of the text, 16 hexadecimal digits: tells texts apart, proves nothing.
std::string digest_of(std::string_view text);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_TEXT_FILE_H_
