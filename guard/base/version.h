// The version of the library that is linked, which may differ from that of
// the headers.
#ifndef ATTNGUARD_GUARD_BASE_VERSION_H_
#define ATTNGUARD_GUARD_BASE_VERSION_H_

#include <string_view>

namespace attnguard {

// "major.minor.patch", as the build's project() states it.
std::string_view version_string();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_VERSION_H_
