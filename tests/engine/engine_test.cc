#include "guard/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "guard/engine/memory.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

Engine engine_that(AttentionCallback run) {
  Engine engine;
  engine.name = "mine";
  engine.run = std::move(run);
  return engine;
}

TEST(RunEngine, PassesSuccessOn) {
  EXPECT_TRUE(
      run_engine(engine_that([](const AttentionCall&) { return ok_status(); }),
                 {})
          .ok());
}

TEST(RunEngine, NamesTheEngineInEveryKindOfFailure) {
  const std::pair<AttentionCallback, const char*> cases[] = {
      {nullptr, "has no callback"},
      {[](const AttentionCall&) { return unsupported("no kernel"); },
       "failed: no kernel"},
      {[](const AttentionCall&) -> Status { throw std::logic_error("bad"); },
       "threw an exception: bad"},
      {[](const AttentionCall&) -> Status { throw 42; },
       "not a std::exception"},
  };
  for (const auto& [run, message] : cases) {
    const Status status = run_engine(engine_that(run), {});
    EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
    EXPECT_THAT(status.message(), HasSubstr("'mine'"));
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

TEST(UnsupportedReason, ChecksDtypesBeforeAskingTheEngine) {
  Engine engine;
  engine.capabilities.dtypes = {Dtype::kFp16};
  int asked = 0;
  engine.capabilities.unsupported = [&](const Problem& problem) -> std::string {
    ++asked;
    return problem.batch > 1 ? "one entry at a time" : "";
  };
  Problem problem;
  EXPECT_EQ(unsupported_reason(engine, problem), "dtype fp32 is not supported");
  EXPECT_EQ(asked, 0);
  problem.dtype = Dtype::kFp16;
  EXPECT_EQ(unsupported_reason(engine, problem), "");
  problem.batch = 2;
  EXPECT_EQ(unsupported_reason(engine, problem), "one entry at a time");
}

TEST(NumericsOf, AreTheEnginesOwnOrFollowTheDtype) {
  Engine engine;
  Problem problem;
  EXPECT_EQ(numerics_of(engine, problem).accumulator, Dtype::kFp32);
  problem.dtype = Dtype::kBf16;
  EXPECT_EQ(numerics_of(engine, problem).probability, Dtype::kFp32);
  problem.dtype = Dtype::kFp64;
  EXPECT_EQ(numerics_of(engine, problem).accumulator, Dtype::kFp64);
  EXPECT_EQ(numerics_of(engine, problem).probability, Dtype::kFp64);
  engine.capabilities.numerics = [](const Problem&) {
    Numerics numerics;
    numerics.key_error = 0.25;
    return numerics;
  };
  EXPECT_EQ(numerics_of(engine, problem).key_error, 0.25);
}

TEST(HostMemory, IsAlignedAndCopiesBothWays) {
  const auto memory = host_memory();
  EXPECT_TRUE(memory->host_accessible());
  const Result<void*> allocated = memory->allocate(100);
  ASSERT_TRUE(allocated.ok()) << allocated.status().message();
  void* data = allocated.value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
  const char text[] = "attention";
  char back[sizeof(text)] = {};
  EXPECT_TRUE(memory->copy_in(data, text, sizeof(text)).ok());
  EXPECT_TRUE(memory->copy_out(back, data, sizeof(text)).ok());
  EXPECT_STREQ(back, text);
  memory->release(data);
}

#if !defined(__SANITIZE_ADDRESS__)  // Which ends the process instead.
TEST(HostMemory, SaysHowMuchThereIsNot) {
  const Status status = host_memory()->allocate(std::size_t{1} << 62).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(status.message(),
            "the host has no 4611686018427387904 bytes in one piece");
}
#endif

}  // namespace
}  // namespace attnguard
