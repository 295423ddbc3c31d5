// What opening a plugin says when it cannot be used, and what it leaves behind.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "adapters/plugin/library.h"
#include "tests/adapters/plugin/test_plugins.h"

namespace attnguard {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void expect_refused(const Result<Engine>& engine, StatusCode code,
                    const std::string& says) {
  ASSERT_FALSE(engine.ok()) << says;
  EXPECT_EQ(engine.status().code(), code) << engine.status().message();
  EXPECT_THAT(engine.status().message(),
              AllOf(HasSubstr("plugin '"), HasSubstr(says)));
}

// A folder of the test's own, which is the current one while it lives.
class CurrentFolder {
 public:
  CurrentFolder() : before_(std::filesystem::current_path()) {
    std::string name = testing::TempDir() + "attnguard-plugin-XXXXXX";
    path_ = ::mkdtemp(name.data());
    std::filesystem::current_path(path_);
  }
  ~CurrentFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;

 private:
  std::filesystem::path before_, path_;
};

TEST(OpenPlugin, TakesWhatItIsToldOfTheFixture) {
  const Engine engine = plugin_engine("fixture", ",echo=a b=c:d");
  EXPECT_EQ(engine.name, "plugin:" + plugin_path("fixture") + ",echo=a b=c:d");
  EXPECT_EQ(engine.description, "fixture: a b=c:d, " + plugin_path("fixture"));
  EXPECT_EQ(engine.capabilities.dtypes.size(), all_dtypes().size());
  EXPECT_TRUE(engine.capabilities.deterministic);
  for (Feature feature : all_input_features())
    EXPECT_TRUE(engine.capabilities.has(feature)) << feature_name(feature);
  EXPECT_TRUE(engine.capabilities.has(Feature::kLse));
  EXPECT_TRUE(engine.capabilities.has(Feature::kWeights));
  EXPECT_TRUE(static_cast<bool>(engine.append));
  EXPECT_EQ(engine.memory, nullptr);
}

TEST(OpenPlugin, TakesAnyPathAndNoneFromTheLoadersFolders) {
  const CurrentFolder here;
  std::filesystem::create_directory("a-b.c");
  const std::filesystem::path file = plugin_path("fixture");
  std::filesystem::copy(file, "mine.so");
  std::filesystem::copy(file, "a-b.c/m y:(1).so");
  for (const char* path :
       {"mine.so", "./mine.so", "a-b.c/m y:(1).so", "a-b.c/../mine.so"})
    EXPECT_TRUE(open_path(path).ok()) << path;
  // The loader would find this one anywhere.
  expect_refused(
      open_path("libm.so.6"), StatusCode::kNotFound,
      "no such file below " + std::filesystem::current_path().string());
}

TEST(OpenPlugin, SaysWhatIsWrongWithTheFile) {
  const CurrentFolder here;
  expect_refused(open_path("./nowhere.so"), StatusCode::kNotFound,
                 "'./nowhere.so': no such file");
  expect_refused(open_path("/no/where.so"), StatusCode::kNotFound,
                 "no such file; write plugin:PATH");
  expect_refused(open_path("."), StatusCode::kInvalidArgument, "is a folder");
  expect_refused(open_path("/dev/null"), StatusCode::kInvalidArgument,
                 "cannot be read");
  std::ofstream("empty.so");
  std::ofstream("text.so") << "#!/bin/sh\n" << std::string(4096, ' ');
  expect_refused(open_path("empty.so"), StatusCode::kInvalidArgument,
                 "no shared library that loads here: ./empty.so: file too");
  expect_refused(open_path("text.so"), StatusCode::kInvalidArgument,
                 "invalid ELF header");
}

TEST(OpenPlugin, SaysWhatIsWrongWithTheTable) {
  const std::pair<const char*, const char*> cases[] = {
      {"no_symbol", "it does not export attnguard_plugin_get; define it"},
      {"null_table", "attnguard_plugin_get(1) returned NULL"},
      {"newer_version",
       "built for plugin ABI version 7, and this attnguard "
       "knows up to 1"},
      {"too_small", "size of its table is 32, and version 1 has at least 40"},
      {"null_run", "the function run of its table is NULL"},
      {"half_memory",
       "memory functions its table has release but not allocate copy_in "
       "copy_out"},
  };
  for (const auto& [name, says] : cases) {
    SCOPED_TRACE(name);
    expect_refused(open_plugin(name), StatusCode::kInvalidArgument, says);
  }
}

TEST(OpenPlugin, SaysWhatThePluginDoesWrong) {
  struct Case {
    const char* fault;
    StatusCode code;
    const char* says;
  };
  const StatusCode failure = StatusCode::kEngineFailure;
  const Case cases[] = {
      {"create-fails", failure, "create() returned 'failed': no such device"},
      {"create-unsupported", StatusCode::kUnsupported, "needs AVX-512"},
      {"create-status", failure,
       "create() returned status -1, which plugin "
       "ABI version 1 does not have"},
      {"create-throws", failure, "create() threw an exception (out of cheese)"},
      {"create-throws-int", failure, "threw an exception (no std::exception)"},
      {"describe-fails", failure, "describe() returned 'failed': cannot say"},
      {"unknown-dtype", failure, "bits that stand for no dtype: 9;"},
      {"mask-dtype", failure, "bits that stand for no dtype: 16;"},
      {"no-dtype", failure, "dtypes is 0"},
      {"unknown-feature", failure, "bits that stand for no feature: 40;"},
      {"deterministic-7", failure, "deterministic is 7"},
      {"endless-name", failure, "name does not end with 0 within its 64"},
      {"endless-description", failure, "description does not end with 0"},
      {"describe-overrun", failure, "describe() wrote past the end"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.fault);
    expect_refused(open_plugin("fixture", std::string(",fault=") + each.fault),
                   each.code, each.says);
  }
  expect_refused(open_plugin("fixture", ",colour=red"),
                 StatusCode::kInvalidArgument, "unknown option 'colour'");
  expect_refused(open_plugin("device", ",fault=no-memory"),
                 StatusCode::kOutOfMemory,
                 "no memory to try its copies with (10007 bytes): allocate() "
                 "returned 'out of memory': device is full");
  expect_refused(open_plugin("device", ",fault=null-memory"), failure,
                 "allocate() returned success and no memory");
  expect_refused(open_plugin("device", ",fault=copy-garbles"), failure,
                 "copy_out() does not return what copy_in() was given");
  expect_refused(open_plugin("device", ",memory=shared,fault=misaligned"),
                 failure, "an address that is not a multiple of 64");
}

TEST(OpenPlugin, ClosesTheLibraryWithTheLastCopyOfTheEngine) {
  const std::string path = plugin_path("device");
  const auto loaded = [&] {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
  };
  ASSERT_FALSE(loaded());
  std::shared_ptr<Memory> memory;
  {
    const Engine engine = plugin_engine("device");
    memory = engine.memory;
  }
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(loaded());
  const Result<void*> data = memory->allocate(100);
  ASSERT_TRUE(data.ok()) << data.status().message();
  memory->release(data.value());
  memory.reset();
  EXPECT_FALSE(loaded());
  EXPECT_FALSE(open_plugin("device", ",fault=describe-fails").ok());
  EXPECT_FALSE(loaded());
}

int some_create(const attnguard_options*, void**, char*, std::size_t) {
  return ATTNGUARD_OK;
}
int some_describe(void*, attnguard_description*, char*, std::size_t) {
  return ATTNGUARD_OK;
}
int some_run(void*, const attnguard_call*, char*, std::size_t) {
  return ATTNGUARD_OK;
}
int some_supports(void*, const attnguard_problem*, char*, std::size_t) {
  return ATTNGUARD_OK;
}

attnguard_plugin some_table() {
  attnguard_plugin table = {};
  table.size = sizeof table;
  table.abi_version = ATTNGUARD_PLUGIN_ABI_VERSION;
  table.create = some_create;
  table.destroy = [](void*) {};
  table.describe = some_describe;
  table.run = some_run;
  table.supports = some_supports;
  return table;
}

TEST(ReadTable, IgnoresWhatLiesBehindTheSize) {
  attnguard_plugin table = some_table();
  attnguard_plugin read = {};
  table.release = [](void*, void*) {};  // Half of the memory functions.
  table.size = offsetof(attnguard_plugin, supports);
  ASSERT_TRUE(plugin::read_table(&table, read).ok());
  EXPECT_EQ(read.run, &some_run);
  EXPECT_EQ(read.supports, nullptr);
  EXPECT_EQ(read.release, nullptr);
  // Half of a pointer is none.
  table.size += 4;
  ASSERT_TRUE(plugin::read_table(&table, read).ok());
  EXPECT_EQ(read.supports, nullptr);
  table.size += 4;
  ASSERT_TRUE(plugin::read_table(&table, read).ok());
  EXPECT_EQ(read.supports, &some_supports);
}

TEST(ReadTable, TakesALongerTableOfAYoungerHeader) {
  struct Longer {
    attnguard_plugin table = some_table();
    void* younger[4] = {};
  } longer;
  longer.table.size = sizeof longer;
  attnguard_plugin read = {};
  EXPECT_TRUE(plugin::read_table(&longer.table, read).ok());
  EXPECT_EQ(read.supports, &some_supports);
}

TEST(ReadTable, RefusesVersionsSizesAndMissingFunctions) {
  const auto says = [](const attnguard_plugin& table) {
    attnguard_plugin read = {};
    const Status status = plugin::read_table(&table, read);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  attnguard_plugin table = some_table();
  table.abi_version = 0;
  EXPECT_THAT(says(table), HasSubstr("abi_version of its table is 0"));
  for (std::uint32_t size : {0u, 7u, 39u, 1u << 20, UINT32_MAX}) {
    table = some_table();
    table.size = size;
    EXPECT_THAT(says(table), HasSubstr("size of its table is " +
                                       std::to_string(size) + ","));
  }
  table = some_table();
  table.create = nullptr;
  EXPECT_THAT(says(table), HasSubstr("function create of its table is NULL"));
  table = some_table();
  table.destroy = nullptr;
  EXPECT_THAT(says(table), HasSubstr("function destroy of"));
  table = some_table();
  table.describe = nullptr;
  EXPECT_THAT(says(table), HasSubstr("function describe of"));
}

}  // namespace
}  // namespace attnguard
