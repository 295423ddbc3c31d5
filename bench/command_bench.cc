// What the command costs as a process: how long it takes to start, and the time
// and memory of its default run. What a start printed is verified before starts
// are timed; a run of a minute is not made twice, and counts only if what it
// printed is right.
//
//   command_bench                                      about two minutes
//   command_bench --benchmark_filter=start_up          a second
//
// Counters: startup_ms, the median from the spawn to the exit; wall_s; and
// peak_rss_mb, the largest resident size that the command's process or one of
// an engine's had, in units of 1e6 bytes. They share the tensors' pages.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace attnguard {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string out;
  double seconds = 0;
  double peak_rss_mb = 0;
};

std::string content_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char part[4096];
  for (std::size_t size; (size = std::fread(part, 1, sizeof part, file)) > 0;)
    text.append(part, size);
  return text;
}

// Runs the command to its end. Its output goes to a file, as a pipe would need
// a reader at its side.
Outcome run_command(std::vector<std::string> words) {
  Outcome outcome;
  words.insert(words.begin(), ATTNGUARD_COMMAND);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(),
                                                            std::fclose);
  if (!out) return outcome;

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  pid_t pid = -1;
  const auto start = std::chrono::steady_clock::now();
  const int failed =
      posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage = {};
  if (failed != 0 || wait4(pid, &status, 0, &usage) != pid) return outcome;
  outcome.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  // In KiB; of the command and, as it waits for them, of its own children.
  outcome.peak_rss_mb = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
  outcome.out = content_of(out.get());
  return outcome;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// `expected` begins a line of what the command must print.
bool is_right(const Outcome& outcome, const std::string& expected) {
  return outcome.exit_code == 0 &&
         ("\n" + outcome.out).find("\n" + expected) != std::string::npos;
}

void start_up(benchmark::State& state, const std::vector<std::string>& words,
              const std::string& expected) {
  if (!is_right(run_command(words), expected)) {
    state.SkipWithError("the command does not print what it should");
    return;
  }
  std::vector<double> milliseconds;
  double peak = 0;
  for (auto _ : state) {
    const Outcome outcome = run_command(words);
    state.SetIterationTime(outcome.seconds);
    milliseconds.push_back(1e3 * outcome.seconds);
    peak = std::max(peak, outcome.peak_rss_mb);
  }
  state.counters["startup_ms"] = median(milliseconds);
  state.counters["peak_rss_mb"] = peak;
}

void default_run(benchmark::State& state,
                 const std::vector<std::string>& options) {
  std::vector<std::string> words = {"check", "--engine", "builtin:tiled"};
  words.insert(words.end(), options.begin(), options.end());
  for (auto _ : state) {
    const Outcome outcome = run_command(words);
    if (!is_right(outcome, "pass  ")) {
      state.SkipWithError("the run does not pass: its time says nothing");
      return;
    }
    state.SetIterationTime(outcome.seconds);
    state.counters["wall_s"] = outcome.seconds;
    state.counters["peak_rss_mb"] = outcome.peak_rss_mb;
  }
}

using Words = std::vector<std::string>;

BENCHMARK_CAPTURE(start_up, version, Words{"--version"},
                  std::string("attnguard "))
    ->UseManualTime()
    ->Iterations(31)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(start_up, list_checks, Words{"list", "checks"},
                  std::string("row-sum "))
    ->UseManualTime()
    ->Iterations(31)
    ->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(default_run, all, Words{})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
// Problems that need more are left out, however many they are.
BENCHMARK_CAPTURE(default_run, max_memory_32M,
                  Words{"--max-memory", "32M", "--most-unchecked", "100"})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace attnguard

BENCHMARK_MAIN();
