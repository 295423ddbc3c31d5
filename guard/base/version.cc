#include "guard/base/version.h"

namespace attnguard {

std::string_view version_string() { return ATTNGUARD_VERSION; }

}  // namespace attnguard
