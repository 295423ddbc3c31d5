#include "guard/probe/execute.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <set>

#include "guard/probe/random.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

// Memory that the host may not touch directly: allocations are known, and
// every byte goes through the copies. There may be too little of it.
class CountingMemory final : public Memory {
 public:
  Result<void*> allocate(std::size_t size) override {
    if (static_cast<int>(live_.size()) >= most_) {
      if (is_silent_) return nullptr;
      return Status(StatusCode::kOutOfMemory, "the shelf is full");
    }
    Result<void*> data = host_memory()->allocate(size);
    if (data.ok()) live_.insert(data.value());
    return data;
  }
  void release(void* data) override {
    live_.erase(data);
    host_memory()->release(data);
  }
  Status copy_in(void* to, const void* from, std::size_t size) override {
    ++copies_in_;
    std::memcpy(to, from, size);
    return ok_status();
  }
  Status copy_out(void* to, const void* from, std::size_t size) override {
    ++copies_out_;
    std::memcpy(to, from, size);
    return ok_status();
  }
  bool host_accessible() const override { return false; }

  std::set<void*> live_;
  int copies_in_ = 0, copies_out_ = 0;
  int most_ = 1000;         // Allocations that live at once.
  bool is_silent_ = false;  // What is too many is a success with nullptr.
};

struct OneCall {
  Problem problem;
  Plan plan{1};
  explicit OneCall(const std::string& line)
      : problem(problem_of(line)), plan(problem.head_dim_v) {
    plan.request(std::make_shared<RandomScores>(problem, 1),
                 std::make_shared<RandomValues>(problem, 1));
  }
};

std::vector<MemoryFault> faults_of(const std::string& line,
                                   const AttentionCallback& run) {
  OneCall one(line);
  Engine engine{.name = "test", .run = run};
  Executor executor(engine, one.problem);
  EXPECT_TRUE(executor.allocate().ok());
  Observation seen;
  EXPECT_TRUE(executor.run(one.plan, 0, seen).ok());
  return seen.memory_faults;
}

float* floats(const TensorView& view) {
  return reinterpret_cast<float*>(view.data);
}

TEST(Executor, SeesAWritePastEitherEndOfTheOutput) {
  const auto faults =
      faults_of("seq_len=4 head_dim=8", [](const AttentionCall& call) {
        floats(call.output)[-1] = 1;
        floats(call.output)[32] = 1;
        return ok_status();
      });
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].place, MemoryFault::Place::kBefore);
  EXPECT_EQ(faults[0].element, -1);
  EXPECT_EQ(faults[1].place, MemoryFault::Place::kAfter);
  EXPECT_EQ(faults[1].element, 32);
}

TEST(Executor, SeesAChangedInputAndWhere) {
  const auto faults =
      faults_of("seq_len=4 head_dim=8", [](const AttentionCall& call) {
        auto* key = reinterpret_cast<float*>(
            const_cast<std::byte*>(call.key.at(0, 0, 2, 3)));
        *key += 1;
        return ok_status();
      });
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].place, MemoryFault::Place::kInput);
  EXPECT_EQ(faults[0].tensor, "key");
  EXPECT_EQ(faults[0].element, 2 * 8 + 3);
}

TEST(Executor, SeesAWriteBetweenStridedOutputRows) {
  const auto faults = faults_of(
      "seq_len=4 head_dim=8 output_strides=48,48,12,1",
      [](const AttentionCall& call) {
        *reinterpret_cast<float*>(call.output.at(0, 0, 1, 0) + 9 * 4) = 0;
        return ok_status();
      });
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].place, MemoryFault::Place::kGap);
  EXPECT_EQ(faults[0].element, 12 + 9);
}

TEST(Executor, RestoresDamagedInputsBeforeTheNextCall) {
  OneCall one("seq_len=4 head_dim=8");
  one.plan.request(std::make_shared<RandomScores>(one.problem, 1),
                   std::make_shared<RandomValues>(one.problem, 1),
                   {.repeat = 1});
  int call_count = 0;
  float first = 0, second = 0;
  Engine engine{.name = "test", .run = [&](const AttentionCall& call) {
                  auto* q = const_cast<std::byte*>(call.query.data);
                  float& x = *reinterpret_cast<float*>(q);
                  (call_count++ == 0 ? first : second) = x;
                  x = 1234;
                  reinterpret_cast<float*>(q)[-3] = 1;
                  return ok_status();
                }};
  Executor executor(engine, one.problem);
  ASSERT_TRUE(executor.allocate().ok());
  for (int call : {0, 1}) {
    Observation seen;
    ASSERT_TRUE(executor.run(one.plan, call, seen).ok());
    EXPECT_EQ(seen.memory_faults.size(), 2u) << "in call " << call;
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(executor.engine_calls(), 2);
}

TEST(Executor, LeavesThePoisonWhereTheEngineWritesNothing) {
  OneCall one("seq_len=4 head_dim=8 dtype=bf16");
  Engine engine{.name = "test",
                .run = [](const AttentionCall&) { return ok_status(); }};
  Executor executor(engine, one.problem);
  ASSERT_TRUE(executor.allocate().ok());
  Observation seen;
  ASSERT_TRUE(executor.run(one.plan, 0, seen).ok());
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(is_poison(Dtype::kBf16, seen.output.at(0, 0, i, 7)));
}

TEST(Executor, WorksOnMemoryThatTheHostReachesOnlyByCopies) {
  const auto memory = std::make_shared<CountingMemory>();
  Engine engine = builtin("textbook");
  engine.memory = memory;
  const ProblemResult result =
      run_problem(engine, "batch=2 num_heads=2 seq_len=9 mask=causal_top_left");
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  EXPECT_GE(memory->copies_in_, 4 * result.engine_calls);
  EXPECT_GE(memory->copies_out_, 4 * result.engine_calls);
  EXPECT_TRUE(memory->live_.empty()) << "everything is released";
}

TEST(Executor, SaysWhichTensorGotNoMemoryAndWhatTheMemorySays) {
  const auto memory = std::make_shared<CountingMemory>();
  Engine engine = builtin("tiled");
  engine.memory = memory;
  const char* tensors[] = {"query", "key", "value", "output", "mask"};
  const char* bytes[] = {"128", "128", "128", "128", "16"};
  for (std::size_t i = 0; i < std::size(tensors); ++i) {
    memory->most_ = static_cast<int>(i);
    const ProblemResult result =
        run_problem(engine, "seq_len=4 head_dim=8 mask_form=boolean");
    EXPECT_EQ(result.verdict, Verdict::kInconclusive);
    EXPECT_EQ(result.note, "no memory for the " + std::string(tensors[i]) +
                               " tensor (" + bytes[i] +
                               " bytes): the shelf is full; a smaller problem "
                               "needs less");
    EXPECT_TRUE(memory->live_.empty()) << tensors[i];
  }
}

TEST(Executor, TakesNoSuccessWithoutMemory) {
  const auto memory = std::make_shared<CountingMemory>();
  memory->most_ = 0;
  memory->is_silent_ = true;
  Engine engine = builtin("textbook");
  engine.memory = memory;
  const ProblemResult result = run_problem(engine, "seq_len=4 head_dim=8");
  EXPECT_EQ(result.verdict, Verdict::kEngineError);
  EXPECT_EQ(result.note,
            "no memory for the query tensor (128 bytes): the engine's memory "
            "returned success and no memory");
}

TEST(Executor, FailsAgainWhereADerivedProblemFoundNoMemory) {
  const auto memory = std::make_shared<CountingMemory>();
  memory->most_ = 6;  // Four tensors of the problem, half of the other's.
  OneCall one("seq_len=4 head_dim=8");
  const auto derived =
      std::make_shared<const Problem>(problem_of("seq_len=3 head_dim=8"));
  one.plan.request(std::make_shared<RandomScores>(*derived, 1),
                   std::make_shared<RandomValues>(*derived, 1),
                   {.problem = derived});
  Engine engine = builtin("textbook");
  engine.memory = memory;
  Executor executor(engine, one.problem);
  ASSERT_TRUE(executor.allocate().ok());
  ASSERT_EQ(one.plan.calls().size(), 2u);
  for (int tries = 0; tries < 2; ++tries) {
    Observation seen;
    const Status status = executor.run(one.plan, 1, seen);
    EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
    EXPECT_NE(status.message().find("value tensor (96 bytes)"),
              std::string::npos)
        << status.message();
  }
}

TEST(Executor, ReportsAThrowingEngineAsAnEngineError) {
  Engine engine{.name = "test:throws",
                .run = [](const AttentionCall&) -> Status {
                  throw std::runtime_error("device lost");
                }};
  const ProblemResult result = run_problem(engine, "seq_len=9");
  EXPECT_EQ(result.verdict, Verdict::kEngineError);
  EXPECT_NE(result.note.find("device lost"), std::string::npos);
  EXPECT_TRUE(result.checks.empty());
}

}  // namespace
}  // namespace attnguard
