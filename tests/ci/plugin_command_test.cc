// `attnguard check --engine plugin:PATH`: its exit codes and what it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ci/cli.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/ci/run_words.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

Outcome check_plugin(const std::string& spec) {
  const std::string engine = "plugin:" + spec;
  return run_words({"check", "--engine", engine, "--problem",
                    "num_heads=2 seq_len=5 head_dim=16 mask=causal_top_left "
                    "dtype=fp32"});
}

TEST(PluginCommand, ExitsAsAnyEngineDoes) {
  const std::string fixture = plugin_path("fixture");
  EXPECT_EQ(check_plugin(plugin_path("template")).code, kExitPass);
  EXPECT_EQ(check_plugin(fixture).code, kExitPass);
  EXPECT_EQ(check_plugin(plugin_path("device")).code, kExitPass);
  const Outcome leaks = check_plugin(fixture + ",fault=leaks");
  EXPECT_EQ(leaks.code, kExitViolation);
  EXPECT_THAT(leaks.out, HasSubstr("(no-mask)"));
  EXPECT_THAT(leaks.out, HasSubstr("check --engine plugin:" + fixture +
                                   ",fault=leaks --seed"));
}

TEST(PluginCommand, ExitsTwoWhereThereIsNoSuchPluginOrOption) {
  const std::pair<std::string, const char*> cases[] = {
      {"./nowhere.so", "plugin './nowhere.so': no such file"},
      {plugin_path("no_symbol"), "does not export attnguard_plugin_get"},
      {plugin_path("newer_version"), "plugin ABI version 7"},
      {plugin_path("template") + ",heat=2", "unknown option 'heat'"},
  };
  for (const auto& [spec, says] : cases) {
    const Outcome outcome = check_plugin(spec);
    EXPECT_EQ(outcome.code, kExitUsage) << spec;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(PluginCommand, ExitsThreeWhereThePluginFails) {
  const std::string fixture = plugin_path("fixture");
  const Outcome created = check_plugin(fixture + ",fault=create-fails");
  EXPECT_EQ(created.code, kExitEngineError);
  EXPECT_THAT(created.err, HasSubstr("no such device: gpu:7"));
  const Outcome failed = check_plugin(fixture + ",fault=fails");
  EXPECT_EQ(failed.code, kExitEngineError);
  EXPECT_THAT(failed.out, HasSubstr("illegal address at launch"));
}

TEST(PluginCommand, IsListedAndInTheHelp) {
  EXPECT_THAT(run_words({"list", "engines"}).out, HasSubstr("\nplugin:PATH  "));
  EXPECT_THAT(run_words({"check", "--help"}).out,
              HasSubstr("plugin:PATH for your own shared library"));
}

}  // namespace
}  // namespace attnguard
