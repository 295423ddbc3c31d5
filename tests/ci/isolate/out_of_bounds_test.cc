// What touches memory outside of the tensors is found at once, and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ci/isolate/isolation_testing.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// 2 heads x 8 rows x 16 channels of fp32: 1024 bytes, a multiple of 64.
constexpr char kProblem[] =
    "num_heads=2 seq_len=8 head_dim=16 mask=causal_top_left";

ProblemResult memory_of(const std::string& fault,
                        const std::string& line = kProblem) {
  return run_problem(faulty("8=" + fault), line, {"memory"});
}

// The only finding, when it is that of an access out of bounds.
Finding only_finding(const ProblemResult& result) {
  EXPECT_EQ(result.verdict, Verdict::kViolation) << findings_text(result);
  const CheckResult& memory = expect_check(result, "memory");
  EXPECT_THAT(memory.findings, SizeIs(1)) << findings_text(result);
  if (memory.findings.empty()) return {};
  EXPECT_EQ(memory.findings[0].kind, FindingKind::kOutOfBounds);
  return memory.findings[0];
}

TEST(OutOfBounds, FindsReadsWhichLeaveNoTrace) {
  const Finding past = only_finding(memory_of("read-past"));
  EXPECT_EQ(past.tensor, "key");
  EXPECT_EQ(past.element, 256);
  EXPECT_EQ(past.message,
            "read past the end of the key tensor, at element offset 256");
  const Finding before = only_finding(memory_of("read-before"));
  EXPECT_EQ(before.tensor, "key");
  EXPECT_EQ(before.message,
            "read 1024 elements before the start of the key tensor");
}

TEST(OutOfBounds, FindsWritesOnceThatTheCanariesHaveToo) {
  const Finding past = only_finding(memory_of("write-past"));
  EXPECT_EQ(past.tensor, "output");
  EXPECT_EQ(past.message,
            "wrote past the end of the output tensor, at element offset 256");
}

TEST(OutOfBounds, TheCallGoesOnAndTheOtherChecksJudgeIt) {
  const ProblemResult result = run_problem(faulty("8=read-past"), kProblem);
  EXPECT_EQ(result.verdict, Verdict::kViolation);
  EXPECT_THAT(result.note, IsEmpty());
  for (const char* id : {"visibility", "reference", "row-sum", "repeatable"})
    EXPECT_EQ(expect_check(result, id).verdict, Verdict::kPass) << id;
}

TEST(OutOfBounds, FarOutTheProcessDiesAndTheTensorIsStillNamed) {
  const ProblemResult result = memory_of("write-far");
  const Finding far = only_finding(result);
  EXPECT_EQ(far.tensor, "output");
  EXPECT_EQ(far.element, 256 + 5000);
  EXPECT_THAT(result.note, HasSubstr("signal 11"));
}

TEST(OutOfBounds, WithoutTheMemoryCheckAFarAccessIsAnError) {
  const ProblemResult result =
      run_problem(faulty("8=write-far"), kProblem, {"reference"});
  EXPECT_EQ(result.verdict, Verdict::kEngineError);
}

TEST(OutOfBounds, NamesMasksAndIndexArrays) {
  // 8 x 8 bytes of mask.
  const Finding mask = only_finding(
      memory_of("read-mask", std::string(kProblem) + " mask_form=boolean"));
  EXPECT_EQ(mask.tensor, "mask");
  EXPECT_EQ(mask.element, 4096);
  const std::string paged =
      "batch=2 num_heads=1 seq_len_q=8 seq_len_kv=28 head_dim=16 "
      "block_size=4";
  // 2 x 8 ids.
  const Finding table = only_finding(memory_of("read-table", paged));
  EXPECT_EQ(table.tensor, "block_table");
  EXPECT_EQ(table.element, 16);
  const ProblemResult changed = memory_of("write-table", paged);
  ASSERT_EQ(changed.verdict, Verdict::kViolation);
  EXPECT_THAT(expect_check(changed, "memory").findings[0].message,
              HasSubstr("changed its input: the block_table tensor"));
}

TEST(OutOfBounds, AnEngineWithMemoryOfItsOwnIsGivenItsOwn) {
  const auto device = [](const std::string& faults) {
    return isolated("fault:device" + faults, ATTNGUARD_FAULT_WORKER,
                    std::chrono::seconds(60));
  };
  for (const char* line :
       {kProblem, "num_heads=2 seq_len=8 head_dim=16 mask_form=additive",
        "batch=2 num_heads=2 seq_len_q=4,6 seq_len_kv=20,33 head_dim=16 "
        "packed=true packed_padding=3 mask=causal_bottom_right",
        "batch=2 num_heads=2 seq_len_q=2 seq_len_kv=40,17 head_dim=16 "
        "block_size=16 mask=causal_bottom_right"}) {
    const ProblemResult result = run_problem(device(""), line);
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  }
  // Tensors of 96 and of 128 bytes take the same place in shared memory, and
  // not of the engine's own.
  const Engine engine = device("");
  for (const char* line : {"seq_len=3 head_dim=8", "seq_len=4 head_dim=8"}) {
    const ProblemResult result = run_problem(engine, line);
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  }
  // Its memory has no guard pages, but the same bytes around tensors.
  const Finding past =
      only_finding(run_problem(device(",8=write-past"), kProblem, {"memory"}));
  EXPECT_EQ(past.message,
            "wrote past the end of the output tensor, at element offset 256");
}

TEST(OutOfBounds, TensorsOfAnotherCallAreOutOfBounds) {
  const Engine engine = faulty("8=print,7=read-kept,9=read-kept");
  EXPECT_EQ(
      run_problem(engine, "num_heads=512 seq_len=9 head_dim=64", {"reference"})
          .verdict,
      Verdict::kPass);
  const ProblemResult later =
      run_problem(engine, "num_heads=1 seq_len=7 head_dim=16", {"reference"});
  EXPECT_EQ(later.verdict, Verdict::kEngineError) << findings_text(later);
  EXPECT_THAT(later.note, HasSubstr("in tensors of another call"));
}

}  // namespace
}  // namespace attnguard
