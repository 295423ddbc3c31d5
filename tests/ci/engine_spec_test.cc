#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/adapter.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

TEST(EngineSpec, SplitsAdapterEngineAndOptions) {
  std::string adapter;
  const Result<EngineSpec> spec =
      parse_engine_spec(" ggml:flash, kv=q8_0,path=/opt/a=b:c ", adapter);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(adapter, "ggml");
  EXPECT_EQ(spec.value().engine, "flash");
  EXPECT_EQ(spec.value().options.at("kv"), "q8_0");
  EXPECT_EQ(spec.value().options.at("path"), "/opt/a=b:c");
  EXPECT_EQ(spec.value().full, "ggml:flash, kv=q8_0,path=/opt/a=b:c");
}

TEST(EngineSpec, KeepsAnEmptyValue) {
  std::string adapter;
  const Result<EngineSpec> spec = parse_engine_spec("a:b,c=", adapter);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec.value().options.at("c"), "");
}

TEST(EngineSpec, SaysWhatIsMalformed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "there is no adapter"},
      {"tiled", "there is no adapter"},
      {":tiled", "the adapter's name is empty"},
      {"builtin:", "the engine's name is empty"},
      {"builtin: ,a=b", "the engine's name is empty"},
      {"a:b,", "'' is not of the form option=value"},
      {"a:b,c", "'c' is not of the form option=value"},
      {"a:b,=c", "'=c' is not of the form option=value"},
      {"a:b,c=1,c=2", "option 'c' is given twice"},
  };
  for (const auto& [text, says] : cases) {
    std::string adapter;
    const Result<EngineSpec> spec = parse_engine_spec(text, adapter);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(spec.status().message(), HasSubstr(says)) << text;
  }
}

}  // namespace
}  // namespace attnguard
