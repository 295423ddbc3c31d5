// Who owns what a plugin's functions hand over when they also make a mistake.
#include "adapters/plugin/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace attnguard::plugin {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// What the fake plugin does, and what was done to it.
struct FakePlugin {
  bool create_overruns = false;
  bool allocate_overruns = false;
  int allocate_returns = ATTNGUARD_OK;
  const char* allocate_says = "";
  bool allocate_stores_nothing = false;
  int num_destroyed = 0;
  std::vector<void*> released;
};
FakePlugin* fake = nullptr;
char fake_memory[64];

void overrun_message(char* message, std::size_t size) {
  std::memset(message + size, 'x', 8);
}

int fake_create(const attnguard_options*, void** instance, char* message,
                std::size_t size) {
  *instance = fake;
  if (fake->create_overruns) overrun_message(message, size);
  return ATTNGUARD_OK;
}

void fake_destroy(void* instance) {
  EXPECT_EQ(instance, fake);
  ++fake->num_destroyed;
}

int fake_describe(void*, attnguard_description* description, char*,
                  std::size_t) {
  std::strcpy(description->name, "fake");
  description->dtypes = 1u << ATTNGUARD_FP32;
  return ATTNGUARD_OK;
}

int fake_run(void*, const attnguard_call*, char*, std::size_t) {
  return ATTNGUARD_OK;
}

int fake_allocate(void*, std::uint64_t, void** data, char* message,
                  std::size_t size) {
  *data = fake->allocate_stores_nothing ? nullptr : fake_memory;
  std::snprintf(message, size, "%s", fake->allocate_says);
  if (fake->allocate_overruns) overrun_message(message, size);
  return fake->allocate_returns;
}

void fake_release(void*, void* data) { fake->released.push_back(data); }

int fake_copy(void*, void*, const void*, std::uint64_t, char*, std::size_t) {
  return ATTNGUARD_OK;
}

Result<std::shared_ptr<Instance>> open(FakePlugin& plugin) {
  fake = &plugin;
  attnguard_plugin table = {};
  table.size = sizeof table;
  table.abi_version = ATTNGUARD_PLUGIN_ABI_VERSION;
  table.create = fake_create;
  table.destroy = fake_destroy;
  table.describe = fake_describe;
  table.run = fake_run;
  table.allocate = fake_allocate;
  table.release = fake_release;
  table.copy_in = fake_copy;
  table.copy_out = fake_copy;
  const auto library = std::make_shared<Library>(nullptr, "fake.so");
  const Status read = read_table(&table, library->call);
  EXPECT_TRUE(read.ok()) << read.message();
  return Instance::create(library, {"plugin:fake.so", "fake.so", {}});
}

TEST(PluginInstance, IsDestroyedOnce) {
  FakePlugin plugin;
  {
    const auto opened = open(plugin);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(plugin.num_destroyed, 0);
  }
  EXPECT_EQ(plugin.num_destroyed, 1);
}

TEST(PluginInstance, IsDestroyedAlsoWhenCreateOverranItsMessage) {
  FakePlugin plugin;
  plugin.create_overruns = true;
  const auto opened = open(plugin);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(),
              HasSubstr("create() wrote past the end of its message buffer"));
  EXPECT_EQ(plugin.num_destroyed, 1);
}

TEST(PluginInstance, GivesBackMemoryThatCameWithAnOverrunMessage) {
  FakePlugin plugin;
  plugin.allocate_overruns = true;
  const auto opened = open(plugin);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Status status = opened.value()->allocate(64).status();
  EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(status.message(),
              HasSubstr("allocate() wrote past the end of its message buffer"));
  EXPECT_EQ(plugin.released, std::vector<void*>{fake_memory});
}

TEST(PluginInstance, ForgetsWhatAFailedAllocateStored) {
  FakePlugin plugin;
  plugin.allocate_returns = ATTNGUARD_OUT_OF_MEMORY;
  const auto opened = open(plugin);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Status status = opened.value()->allocate(64).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(status.message(),
            "allocate() returned 'out of memory' and gave no message");
  EXPECT_TRUE(plugin.released.empty());
}

TEST(PluginInstance, AFailedAllocateKeepsItsCodeAndItsMessage) {
  const std::pair<int, StatusCode> cases[] = {
      {ATTNGUARD_INVALID_ARGUMENT, StatusCode::kInvalidArgument},
      {ATTNGUARD_UNSUPPORTED, StatusCode::kUnsupported},
      {ATTNGUARD_OUT_OF_MEMORY, StatusCode::kOutOfMemory},
      {ATTNGUARD_FAILED, StatusCode::kEngineFailure},
      {77, StatusCode::kEngineFailure},
  };
  for (const auto& [returns, code] : cases) {
    SCOPED_TRACE(returns);
    FakePlugin plugin;
    plugin.allocate_returns = returns;
    plugin.allocate_says = "cuMemAlloc: out of memory, 3 MiB free";
    const auto opened = open(plugin);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const Status status = opened.value()->allocate(64).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), StartsWith("allocate() returned "));
    EXPECT_THAT(status.message(),
                EndsWith(": cuMemAlloc: out of memory, 3 MiB free"));
  }
}

TEST(PluginInstance, SuccessWithoutMemoryIsThePluginsFault) {
  FakePlugin plugin;
  plugin.allocate_stores_nothing = true;
  plugin.allocate_says = "fine";
  const auto opened = open(plugin);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Result<void*> data = opened.value()->allocate(64);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.status().code(), StatusCode::kEngineFailure);
  EXPECT_THAT(data.status().message(),
              HasSubstr("allocate() returned success and no memory"));
  EXPECT_TRUE(plugin.released.empty());
}

}  // namespace
}  // namespace attnguard::plugin
