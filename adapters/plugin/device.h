// A plugin's memory, as the guard uses it.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_DEVICE_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_DEVICE_H_

#include <memory>

#include "adapters/plugin/instance.h"
#include "guard/engine/memory.h"

namespace attnguard::plugin {

// For instances that have memory functions. Keeps the instance alive. Tries
// the functions first: the plugin's own error where one of them fails, and
// kEngineFailure when what was copied in does not come out again, or an
// address that the host may use is badly aligned.
Result<std::shared_ptr<Memory>> device_memory(
    const std::shared_ptr<Instance>& instance);

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_DEVICE_H_
