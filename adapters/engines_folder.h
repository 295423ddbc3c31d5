// Where engines that were fetched lie.
#ifndef ATTNGUARD_ADAPTERS_ENGINES_FOLDER_H_
#define ATTNGUARD_ADAPTERS_ENGINES_FOLDER_H_

#include <string>

namespace attnguard {

// The variable's value; empty when it is unset, and an empty one counts as
// unset, as shells make it easy to leave one.
std::string environment(const char* name);

struct EnginesFolder {
  std::string path;
  std::string origin;  // What named it: "ATTNGUARD_ENGINES_DIR".
};

// What ci/fetch_engines.sh fills: ATTNGUARD_ENGINES_DIR, else
// attnguard/engines below XDG_CACHE_HOME or ~/.cache.
EnginesFolder engines_folder();

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_ENGINES_FOLDER_H_
