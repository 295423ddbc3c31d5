// Opens the plugins that tests/adapters/plugin/CMakeLists.txt builds.
#ifndef ATTNGUARD_TESTS_ADAPTERS_PLUGIN_TEST_PLUGINS_H_
#define ATTNGUARD_TESTS_ADAPTERS_PLUGIN_TEST_PLUGINS_H_

#include <gtest/gtest.h>

#include <string>

#include "adapters/plugin/plugin.h"

namespace attnguard {

// "fixture" -> ".../libfixture_plugin.so"
inline std::string plugin_path(const std::string& name) {
  return std::string(ATTNGUARD_TEST_PLUGINS) + "/lib" + name + "_plugin.so";
}

inline Result<Engine> open_path(const std::string& path,
                                const std::string& options = "") {
  std::string adapter;
  Result<EngineSpec> spec =
      parse_engine_spec("plugin:" + path + options, adapter);
  if (!spec.ok()) return spec.status();
  EXPECT_EQ(adapter, "plugin");
  return kPluginAdapter.open(spec.value());
}

// `options` as on the command line: ",fault=leaks".
inline Result<Engine> open_plugin(const std::string& name,
                                  const std::string& options = "") {
  return open_path(plugin_path(name), options);
}

inline Engine plugin_engine(const std::string& name,
                            const std::string& options = "") {
  Result<Engine> engine = open_plugin(name, options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? engine.value() : Engine{};
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_PLUGIN_TEST_PLUGINS_H_
