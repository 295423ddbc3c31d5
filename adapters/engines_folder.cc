#include "adapters/engines_folder.h"

#include <cstdlib>

namespace attnguard {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

EnginesFolder engines_folder() {
  if (std::string named = environment("ATTNGUARD_ENGINES_DIR"); !named.empty())
    return {named, "ATTNGUARD_ENGINES_DIR"};
  std::string cache = environment("XDG_CACHE_HOME");
  if (cache.empty()) cache = environment("HOME") + "/.cache";
  return {cache + "/attnguard/engines", "the default"};
}

}  // namespace attnguard
