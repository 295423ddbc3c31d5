// Attention kernels behind a C interface, in a shared library of the user's:
//
//   plugin:./libmine.so              options after commas go to the plugin
//   plugin:/opt/k/libmine.so,threads=4
//
// attnguard_plugin.h is that interface and says how to write a plugin. A path
// without '/' means a file in the current directory, not one that the system's
// loader finds.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_PLUGIN_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_PLUGIN_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kPluginAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_PLUGIN_H_
