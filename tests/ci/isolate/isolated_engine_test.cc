// Engines that die, hang and run wild in a process of their own.
#include "ci/isolate/isolated_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "guard/report/report_table.h"
#include "tests/ci/isolate/isolation_testing.h"
#include "tests/support/sanitizer.h"

namespace attnguard {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kBad[] = "num_heads=2 seq_len=7 head_dim=16";
// Checks shorten it, but not to the other's length.
constexpr char kGood[] = "num_heads=2 seq_len=20 head_dim=16";

// The engine's error on the problem where it fails; the one where it does not
// must pass before and after.
std::string note_of(const std::string& fault) {
  const Engine engine = faulty("7=" + fault, std::chrono::seconds(2));
  EXPECT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
  const ProblemResult bad = run_problem(engine, kBad);
  EXPECT_EQ(bad.verdict, Verdict::kEngineError) << findings_text(bad);
  EXPECT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass) << bad.note;
  EXPECT_EQ(children().size(), 1u);
  return bad.note;
}

TEST(Isolation, MakesEveryDeathAnErrorThatSaysWhatRanAndHowItDied) {
  EXPECT_THAT(
      note_of("crash"),
      AllOf(HasSubstr("engine 'fault:engine,7=crash' failed: "),
            HasSubstr("its process died of signal 11 (Segmentation fault) at "
                      "address 0x10 while it ran attention on 'batch=1"),
            HasSubstr("seq_len_q=7")));
  EXPECT_THAT(note_of("exit"), HasSubstr("ended with exit code 7 while"));
  EXPECT_THAT(note_of("abort"), HasSubstr("died of signal 6 (Aborted)"));
  EXPECT_THAT(note_of("signal"), HasSubstr("died of signal 10"));
  EXPECT_THAT(note_of("kill"), HasSubstr("killed by signal 9"));
  EXPECT_THAT(note_of("throw"),
              HasSubstr("threw an exception: thrown on purpose"));
  EXPECT_THAT(note_of("stack"), HasSubstr("died of signal 11"));
}

TEST(Isolation, SaysWhyTheEnginesOwnMemoryGaveNone) {
  const auto note = [](const std::string& fault) {
    const ProblemResult result =
        run_problem(isolated("fault:device,memory=" + fault,
                             ATTNGUARD_FAULT_WORKER, std::chrono::seconds(60)),
                    kGood);
    EXPECT_EQ(result.verdict, Verdict::kEngineError) << findings_text(result);
    return result.note;
  };
  EXPECT_EQ(note("ends"),
            "engine 'fault:device,memory=ends' failed: no memory for the query "
            "tensor (2560 bytes): the pretend device has 3 MiB left; a smaller "
            "problem needs less");
  EXPECT_THAT(note("null"),
              HasSubstr("no memory for the query tensor (2560 bytes): the "
                        "engine's memory returned success and no memory"));
  EXPECT_THAT(children(), IsEmpty());
}

TEST(Isolation, EndsWhatHangs) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(note_of("hang"),
              HasSubstr("did not finish within 2 s (--timeout) and was killed "
                        "while it ran attention on"));
  const auto seconds = std::chrono::steady_clock::now() - start;
  EXPECT_GE(seconds, std::chrono::seconds(2));
  EXPECT_LT(seconds, std::chrono::seconds(20));
}

TEST(Isolation, SurvivesTheEndOfMemoryInAParallelRegion) {
#if defined(__SANITIZE_ADDRESS__)
  note_of("memory");  // The sanitizer's own end.
#else
  EXPECT_THAT(note_of("memory"),
              HasSubstr("an exception that nobody caught: std::bad_alloc"));
#endif
}

TEST(Isolation, SurvivesEnginesThatWriteToOrCloseAllDescriptors) {
  EXPECT_THAT(note_of("garbage"), HasSubstr("what is no answer"));
  EXPECT_THAT(note_of("close"), HasSubstr("lost its connection"));
}

TEST(Isolation, EndsTheWholeProcessGroup) {
  const Engine engine = faulty("7=child");
  ASSERT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
  const std::vector<pid_t> worker = children();
  ASSERT_EQ(worker.size(), 1u);
  EXPECT_EQ(run_problem(engine, kBad).verdict, Verdict::kEngineError);
  EXPECT_TRUE(is_gone(worker[0]));
  // Signal 0 asks whether there is such a group.
  for (int tries = 0; tries < 500 && kill(-worker[0], 0) == 0; ++tries)
    usleep(10000);
  EXPECT_NE(kill(-worker[0], 0), 0);
}

TEST(Isolation, GoesOnWhenItsProcessIsKilledFromOutside) {
  const Engine engine = faulty("7=print");
  ASSERT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
  ASSERT_EQ(children().size(), 1u);
  const pid_t worker = children()[0];
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  const ProblemResult hit = run_problem(engine, kGood);
  EXPECT_EQ(hit.verdict, Verdict::kEngineError);
  EXPECT_THAT(hit.note, HasSubstr("killed by signal 9"));
  EXPECT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
  EXPECT_NE(children()[0], worker);
}

TEST(Isolation, LeavesNoProcessBehind) {
  {
    const Engine engine = faulty("7=crash");
    EXPECT_EQ(run_problem(engine, kBad).verdict, Verdict::kEngineError);
    EXPECT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
    EXPECT_EQ(children().size(), 1u);
  }
  EXPECT_THAT(children(), IsEmpty());
}

std::string maps() {
  std::ifstream stream("/proc/self/maps");
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       {});
}

TEST(Isolation, LeavesNoMemoryAndNoDescriptorBehind) {
  const std::ptrdiff_t before = open_descriptors();
  {
    const Engine engine = faulty("7=crash");
    EXPECT_EQ(run_problem(engine, kBad).verdict, Verdict::kEngineError);
    EXPECT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
    EXPECT_THAT(maps(), HasSubstr("memfd:attnguard"));
    EXPECT_GT(open_descriptors(), before);
  }
  EXPECT_THAT(maps(), Not(HasSubstr("memfd:attnguard")));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Isolation, ADyingQuestionIsAnErrorOfItsProblem) {
  const Engine engine = faulty("query=crash");
  const ProblemResult bad = run_problem(engine, kBad);
  EXPECT_EQ(bad.verdict, Verdict::kEngineError);
  EXPECT_THAT(bad.note, HasSubstr("while it said whether it supports"));
  EXPECT_EQ(run_problem(engine, kGood).verdict, Verdict::kPass);
}

TEST(Isolation, OpeningFailsWithTheCodeAndTheWordsOfTheOpener) {
  const auto open = [](const std::string& spec, const std::string& program) {
    return open_isolated(spec, {program, std::chrono::seconds(2)}).status();
  };
  const auto fault = [&](const std::string& how) {
    return open("fault:engine,open=" + how, ATTNGUARD_FAULT_WORKER);
  };
  EXPECT_EQ(fault("missing").code(), StatusCode::kNotFound);
  EXPECT_EQ(fault("missing").message(), "the library is not here");
  EXPECT_EQ(open("nonsense", ATTNGUARD_FAULT_WORKER).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(fault("crash").code(), StatusCode::kEngineFailure);
  EXPECT_THAT(fault("crash").message(),
              AllOf(HasSubstr("engine 'fault:engine,open=crash': "),
                    HasSubstr("signal 11"), HasSubstr("while it was opened")));
  EXPECT_THAT(fault("exit").message(), HasSubstr("exit code 9"));
  EXPECT_THAT(fault("hang").message(), HasSubstr("within 2 s"));
  EXPECT_THAT(children(), IsEmpty());
}

TEST(Isolation, SaysWhyAProcessCannotBeStarted) {
  const Status status =
      open_isolated("builtin:tiled", {"/no/such/program"}).status();
  EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("'/no/such/program': No such file"),
                    HasSubstr("--no-isolate")));
  // One that starts and knows nothing of workers.
  EXPECT_THAT(open_isolated("builtin:tiled", {"/bin/true"}).status().message(),
              HasSubstr("ended with exit code 0 while it was opened"));
}

TEST(Isolation, RefusesTensorsThatAreNotInItsMemory) {
  const Engine engine = faulty("7=print");
  const Problem problem = problem_of(kGood);
  std::vector<std::byte> heap(1 << 16);
  AttentionCall call;
  call.problem = &problem;
  call.query.data = heap.data();
  EXPECT_THAT(run_engine(engine, call).message(),
              HasSubstr("the query tensor does not lie in the memory of the "
                        "engine"));
}

// Everything but times, and the process that the engine ran in.
std::string report_of(const Engine& engine, const Policy& policy) {
  RunResult run = verify(engine, policy);
  for (ProblemResult& problem : run.problems)
    problem.engine_seconds = problem.guard_seconds = 0;
  return kReportJson.render({&run, 1}, {});
}

TEST(Isolation, ChangesNothingInTheReportOfAnyBuiltinEngine) {
  Policy policy;
  for (const char* line :
       {"num_heads=4 num_kv_heads=2 seq_len=9 head_dim=16 "
        "mask=causal_top_left",
        "batch=2 num_heads=2 seq_len_q=3,1 seq_len_kv=9,5 head_dim=24 "
        "dtype=fp16 mask=causal_bottom_right layout=bshd",
        "batch=2 num_heads=2 seq_len_q=4,6 seq_len_kv=20,33 head_dim=16 "
        "packed=true packed_padding=3 mask=causal_bottom_right sinks=0.5",
        "batch=2 num_heads=2 num_kv_heads=1 seq_len_q=2 seq_len_kv=40,17 "
        "head_dim=16 block_size=16 mask=causal_bottom_right",
        "num_heads=2 seq_len=20 head_dim=16 mask_form=additive "
        "mask=causal_top_left"})
    if (!kUnderAddressSanitizer || policy.problems.size() < 3)
      policy.problems.push_back({problem_of(line), {}});
  for (const EngineListing& listing : kBuiltinAdapter.list()) {
    // Chance decides what it gives.
    if (listing.name == "builtin:nondeterministic") continue;
    const Engine direct = builtin(listing.name.substr(8));
    const Engine other =
        isolated(listing.name, ATTNGUARD_COMMAND, std::chrono::seconds(60));
    EXPECT_EQ(report_of(other, policy), report_of(direct, policy))
        << listing.name;
  }
}

}  // namespace
}  // namespace attnguard
