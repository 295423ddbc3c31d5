// A plugin's shared library and its table of functions.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_LIBRARY_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/plugin/attnguard_plugin.h"
#include "guard/base/status.h"

namespace attnguard::plugin {

// Closes the library when it goes.
struct Library {
  Library(void* opened, std::string file)
      : handle(opened), path(std::move(file)) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  void* handle;
  std::string path;  // as the user wrote it

  // As much as the plugin has; functions that it has never heard of are
  // nullptr, and so are all four of memory or none.
  attnguard_plugin call = {};
};

// kNotFound: there is no such file. kInvalidArgument: it is no plugin, or none
// that works with this version; the message says what is wrong and the fix.
Result<std::shared_ptr<const Library>> load_library(const std::string& path);

// Copies a plugin's table, whatever its size; the error is without the path.
Status read_table(const attnguard_plugin* table, attnguard_plugin& to);

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_LIBRARY_H_
