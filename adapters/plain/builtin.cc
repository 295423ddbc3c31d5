#include "adapters/plain/builtin.h"

#include <array>
#include <vector>

#include "adapters/plain/builtin_table.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

std::vector<EngineListing> list_engines() {
  std::vector<EngineListing> listings;
  for (const BuiltinEngine* engine : all_builtin_engines())
    listings.push_back(
        {"builtin:" + std::string(engine->name), std::string(engine->summary)});
  return listings;
}

Result<Engine> open_engine(const EngineSpec& spec) {
  if (!spec.options.empty())
    return invalid_argument("engine '" + spec.full +
                            "': builtin engines take no options, got '" +
                            spec.options.begin()->first + "'");
  std::vector<std::string_view> names;
  for (const BuiltinEngine* builtin : all_builtin_engines()) {
    names.push_back(builtin->name);
    if (builtin->name != spec.engine) continue;
    Engine engine = builtin->make();
    engine.name = "builtin:" + std::string(builtin->name);
    engine.description = std::string(builtin->summary);
    return engine;
  }
  return invalid_argument("no builtin engine '" + spec.engine + "'" +
                          suggestion(spec.engine, names));
}

}  // namespace

std::span<const BuiltinEngine* const> all_builtin_engines() {
  static constexpr std::array kEngines = {
      &kBuiltinReference,
      &kBuiltinTextbook,
      &kBuiltinTiled,
      &kBuiltinWrongAxis,
      &kBuiltinNoMask,
      &kBuiltinCausalOffByOne,
      &kBuiltinMaskAfterSoftmax,
      &kBuiltinDropsLastKey,
      &kBuiltinDropsLastTile,
      &kBuiltinWrongKvHead,
      &kBuiltinWrongScale,
      &kBuiltinStaleRow,
      &kBuiltinOverwritesInput,
      &kBuiltinOverruns,
      &kBuiltinNondeterministic,
      &kBuiltinThrows,
  };
  return kEngines;
}

const Adapter kBuiltinAdapter = {
    .name = "builtin",
    .summary =
        "engines that come with attnguard: correct ones to compare "
        "with, known-bad ones to see it find something",
    .list = list_engines,
    .open = open_engine,
};

}  // namespace attnguard
