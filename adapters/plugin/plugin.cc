#include "adapters/plugin/plugin.h"

#include <memory>
#include <string>

#include "adapters/plugin/device.h"
#include "adapters/plugin/instance.h"
#include "adapters/plugin/library.h"

namespace attnguard {
namespace {

using plugin::Description;
using plugin::Instance;
using plugin::Library;

std::vector<EngineListing> list_engines() {
  return {{"plugin:PATH",
           "the shared library PATH, e.g. plugin:./libmine.so,threads=4; "
           "options go to it as they are"}};
}

std::string describe(const Instance& instance) {
  const Description& says = instance.description();
  std::string text = says.name;
  if (!says.description.empty())
    text += (text.empty() ? "" : ": ") + says.description;
  text += text.empty() ? "plugin " : ", ";
  return text + instance.path() +
         (instance.has_memory() && !says.host_accessible
              ? ", in memory of its own"
              : "");
}

// The instance outlives whatever uses it, and the library the instance.
Result<Engine> make_engine(const EngineSpec& spec,
                           const std::shared_ptr<Instance>& instance) {
  const Description& says = instance->description();
  Engine engine;
  engine.name = spec.full;
  engine.description = describe(*instance);
  engine.capabilities.dtypes = says.dtypes;
  engine.capabilities.features = says.features;
  engine.capabilities.deterministic = says.deterministic;
  engine.capabilities.numerics = [instance](const Problem& problem) {
    return instance->numerics(problem);
  };
  engine.capabilities.unsupported = [instance](const Problem& problem) {
    return instance->unsupported(problem);
  };
  engine.run = [instance](const AttentionCall& call) {
    return instance->run(call);
  };
  if (instance->has_append())
    engine.append = [instance](const CacheAppend& append) {
      return instance->append(append);
    };
  if (!instance->has_memory()) return engine;
  const Result<std::shared_ptr<Memory>> memory =
      plugin::device_memory(instance);
  if (!memory.ok()) return memory.status();
  engine.memory = memory.value();
  return engine;
}

Result<Engine> open_engine(const EngineSpec& spec) {
  const Result<std::shared_ptr<const Library>> library =
      plugin::load_library(spec.engine);
  if (!library.ok()) return library.status();
  const Result<std::shared_ptr<Instance>> instance =
      Instance::create(library.value(), spec);
  if (!instance.ok()) return instance.status();
  return make_engine(spec, instance.value());
}

}  // namespace

const Adapter kPluginAdapter = {
    "plugin",
    "your own kernel in any language: a shared library with one C function, "
    "see adapters/plugin/attnguard_plugin.h",
    list_engines, open_engine};

}  // namespace attnguard
