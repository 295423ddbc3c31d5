// Who is given a file, who is counted instead, and what is left on the disk.
#include "guard/runtime/dump_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "guard/runtime/dump_file.h"
#include "guard/runtime/whole_file.h"
#include "tests/runtime/dump_folder.h"
#include "tests/runtime/live_tensors.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DumpWriter, CountsACallWhoseRowIsTooLarge) {
  LiveTensors tensors("seq_len_q=4 seq_len_kv=512 head_dim=64 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  const DumpFolder folder;
  HeardLog log;
  DumpSettings settings = settings_of(folder);
  settings.max_bytes = 50'000;
  DumpWriter writer(settings, "x", log.function());
  EXPECT_FALSE(writer.take(violation.violation));
  EXPECT_EQ(writer.counters().dropped_size, 1u);
  EXPECT_THAT(log.lines(),
              ElementsAre(HasSubstr("larger than dump_max_bytes")));
  EXPECT_TRUE(folder.files().empty());
}

// The canary's calls: they are made again from a problem and a seed.
TEST(DumpWriter, SaysHowToMakeACallWithoutTensors) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  TestViolation violation(tensors, 0, 0, 2, kActionDump);
  violation.call = {.problem = &tensors.problem()};
  const DumpFolder folder;
  HeardLog log;
  DumpWriter writer(settings_of(folder), "x", log.function());
  EXPECT_FALSE(writer.take(violation.violation));
  EXPECT_EQ(writer.counters().no_tensors, 1u);
  EXPECT_THAT(log.lines(),
              ElementsAre(HasSubstr("attnguard check --seed 5 --problem '" +
                                    tensors.problem().text() + "'")));
}

TEST(DumpWriter, KeepsRoomForWhatWasNotSeenBefore) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const TestViolation first(tensors, 0, 0, 2, kActionDump, "first");
  const TestViolation second(tensors, 0, 0, 2, kActionDump, "second");
  const DumpFolder folder;
  HeardLog log;
  DumpSettings settings = settings_of(folder);
  settings.max_files = 4;
  DumpWriter writer(settings, "x", log.function());
  int taken = 0;
  for (int n = 0; n < 10; ++n) {
    taken += writer.take(first.violation);
    ASSERT_TRUE(writer.flush(kLong));
  }
  EXPECT_EQ(taken, 2);
  EXPECT_TRUE(writer.take(second.violation));
  ASSERT_TRUE(writer.flush(kLong));
  EXPECT_EQ(writer.counters().written, 3u);
  EXPECT_EQ(writer.counters().dropped_limit, 8u);
  EXPECT_EQ(folder.files().size(), 3u);
  // Three files; the 1st, 2nd, 4th and 8th that was not written.
  EXPECT_EQ(log.lines().size(), 7u);
}

// Four threads, all at once: each violation is on disk or counted.
TEST(DumpWriter, LosesNothingSilentlyUnderManyAtOnce) {
  LiveTensors tensors("num_heads=4 seq_len=64 head_dim=32 mask=full");
  const DumpFolder folder;
  DumpSettings settings = settings_of(folder);
  settings.max_files = 1000;
  DumpWriter writer(settings, "x", {});
  std::atomic<std::uint64_t> taken = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        LiveTensors own("num_heads=4 seq_len=64 head_dim=32 mask=full");
        const TestViolation violation(own, 0, 0, 2, kActionDump);
        for (int n = 0; n < 50; ++n) taken += writer.take(violation.violation);
      });
  }
  ASSERT_TRUE(writer.flush(kLong));
  const DumpCounters counters = writer.counters();
  EXPECT_EQ(counters.written, taken);
  EXPECT_EQ(counters.written + counters.dropped_busy, 200u);
  EXPECT_EQ(folder.files().size(), counters.written);
  for (const std::string& file : folder.files())
    EXPECT_TRUE(Dump::load(file).ok()) << file;
}

TEST(DumpWriter, SaysThatAFolderCannotBeWritten) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  HeardLog log;
  DumpWriter writer({.folder = "/dev/null/dumps"}, "x", log.function());
  EXPECT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  EXPECT_EQ(writer.counters().failed, 1u);
  EXPECT_THAT(log.lines(),
              ElementsAre(HasSubstr("cannot make the folder /dev/null/dumps")));
}

TEST(DumpWriter, MakesItsFolder) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  const DumpFolder folder;
  DumpSettings settings = settings_of(folder);
  settings.folder += "/a/b";
  DumpWriter writer(settings, "x", {});
  EXPECT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  EXPECT_EQ(writer.counters().written, 1u);
}

TEST(DumpWriter, FinishesWhatItTookBeforeItGoes) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  const DumpFolder folder;
  {
    EXPECT_TRUE(
        DumpWriter(settings_of(folder), "x", {}).take(violation.violation));
  }
  ASSERT_EQ(folder.files().size(), 1u);
  EXPECT_TRUE(Dump::load(folder.files()[0]).ok());
}

// A limit on the size of files stands for a disk that is full.
TEST(DumpWriter, LeavesNoHalfAFileWhenTheDiskIsFull) {
  LiveTensors tensors("num_heads=4 seq_len=64 head_dim=32 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  const DumpFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{4096, 4096};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    DumpWriter writer(settings_of(folder), "x", {});
    const bool good = writer.take(violation.violation) && writer.flush(kLong) &&
                      writer.counters().failed == 1 &&
                      writer.counters().written == 0;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(folder.files().empty());
}

TEST(DumpWriter, GoesOnInTheChildOfAFork) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  const DumpFolder folder;
  DumpWriter writer(settings_of(folder), "x", {});
  ASSERT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(writer.take(violation.violation) && writer.flush(kLong) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  EXPECT_EQ(folder.files().size(), 3u);
}

// Run in the child, whose exit code says what went wrong.
int dump_in_child(DumpWriter& writer, const Violation& violation) {
  const DumpCounters before = writer.counters();
  if (before.written + before.bytes + before.failed != 0) return 2;
  if (before.dropped_limit + before.dropped_busy + before.dropped_size +
          before.no_tensors !=
      0)
    return 3;
  if (!writer.take(violation) || !writer.flush(kLong)) return 4;
  const DumpCounters first = writer.counters();
  if (first.written != 1 || first.bytes == 0) return 5;
  if (writer.take(violation)) return 6;  // Its own limit.
  const DumpCounters second = writer.counters();
  if (second.written != 1 || second.bytes != first.bytes) return 7;
  return second.dropped_limit == 1 && second.no_tensors == 0 ? 0 : 8;
}

// Files of a process carry its number.
std::uint64_t bytes_of_process(const DumpFolder& folder, pid_t process) {
  std::uint64_t bytes = 0;
  for (const std::string& file : folder.files())
    if (file.find("-" + std::to_string(process) + "-") != file.npos)
      bytes += std::filesystem::file_size(file);
  return bytes;
}

TEST(DumpWriter, CountsParentAndChildApart) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const TestViolation violation(tensors, 0, 0, 2, kActionDump);
  TestViolation without_tensors(tensors, 0, 0, 2, kActionDump);
  without_tensors.call = {.problem = &tensors.problem()};
  const DumpFolder folder;
  DumpSettings settings = settings_of(folder);
  settings.max_files = 2;  // One for each kind, another for what is new.
  DumpWriter writer(settings, "x", {});
  ASSERT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  EXPECT_FALSE(writer.take(violation.violation));
  EXPECT_FALSE(writer.take(without_tensors.violation));
  const DumpCounters before = writer.counters();
  EXPECT_EQ(before.bytes, bytes_of_process(folder, getpid()));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    writer.after_fork();
    _exit(dump_in_child(writer, violation.violation));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(bytes_of_process(folder, child), 0u);
  EXPECT_EQ(folder.files().size(), 2u);
  const DumpCounters after = writer.counters();
  EXPECT_EQ(after.written, 1u);
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.dropped_limit, 1u);
  EXPECT_EQ(after.no_tensors, 1u);
  EXPECT_EQ(after.failed + after.dropped_busy + after.dropped_size, 0u);
  EXPECT_EQ(after.bytes, bytes_of_process(folder, getpid()));
}

TEST(WholeFile, NeverReplacesAnother) {
  const DumpFolder folder;
  const std::string path = folder.path() + "/x";
  std::ofstream(path) << "mine";
  const std::string text = "other";
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  const Status status = write_whole_file(path, {&piece, 1});
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), HasSubstr("File exists"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
  EXPECT_EQ(folder.files().size(), 1u);
}

}  // namespace
}  // namespace attnguard
