// What a plugin says of itself, read with suspicion.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_DESCRIPTION_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_DESCRIPTION_H_

#include <functional>
#include <string>
#include <vector>

#include "adapters/plugin/attnguard_plugin.h"
#include "guard/engine/engine.h"

namespace attnguard::plugin {

struct Description {
  std::string name;  // may be empty
  std::string description;
  std::vector<Dtype> dtypes;
  std::vector<Feature> features;
  bool deterministic = true;
  bool host_accessible = false;
};

// `describe` calls the plugin. The error names the field.
Result<Description> read_description(
    const std::function<Status(attnguard_description*)>& describe);

// `ask` calls the plugin, which may change what stands in the struct.
Result<Numerics> read_numerics(
    const Problem& problem,
    const std::function<Status(attnguard_numerics*)>& ask);

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_DESCRIPTION_H_
