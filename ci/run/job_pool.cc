#include "ci/run/job_pool.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "ci/isolate/wire.h"
#include "guard/report/read_json_report.h"

namespace attnguard {
namespace {

using Clock = std::chrono::steady_clock;

// How often the time limit and signals are looked at.
constexpr int kSliceMilliseconds = 100;

constexpr std::chrono::seconds kOpening{120};

Result<ProblemResult> answer_of(const std::string& text) {
  Result<JsonReport> report = read_json_report(text);
  if (!report.ok()) return report.status();
  if (report.value().runs.size() != 1 ||
      report.value().runs[0].problems.size() != 1)
    return invalid_argument("the answer holds more or less than one problem");
  return std::move(report.value().runs[0].problems[0]);
}

}  // namespace

JobPool::~JobPool() {
  for (Worker& worker : workers_) {
    if (worker.process == nullptr) continue;
    if (worker.task < 0) worker.process->finish();
    worker.process.reset();
  }
}

Status JobPool::start(Worker& worker) {
  auto started = JobProcess::start(options_.program, options_.words);
  if (!started.ok()) return started.status();
  worker.process = std::move(started.value());
  std::string hello;
  const Transfer received =
      receive_frame(worker.process->socket(), hello, Clock::now() + kOpening,
                    [&] { return worker.process->is_alive(); });
  if (received == Transfer::kDone && hello == options_.policy_digest)
    return ok_status();
  if (received == Transfer::kDone)
    return {StatusCode::kEngineFailure,
            "the policy changed while the run started"};
  // It has a moment to say how it ended.
  for (int slice = 0; slice < 20 && worker.process->is_alive(); ++slice)
    poll(nullptr, 0, kSliceMilliseconds);
  const std::string end = worker.process->end();
  worker.process.reset();
  return {StatusCode::kEngineFailure,
          "a process of --jobs " + end + " before its first problem"};
}

// A problem that is too large beside others runs alone.
bool JobPool::fits(const std::vector<JobTask>& tasks, std::size_t next) const {
  if (!options_.max_memory) return true;
  std::int64_t used = 0;
  for (const Worker& worker : workers_)
    if (worker.task >= 0)
      used += tasks[static_cast<std::size_t>(worker.task)].bytes;
  return used == 0 || used + tasks[next].bytes <= *options_.max_memory;
}

Status JobPool::give_out(const std::vector<JobTask>& tasks, std::size_t& next,
                         std::vector<Answer>& answers) {
  for (Worker& worker : workers_) {
    if (next == tasks.size() || !fits(tasks, next)) break;
    if (worker.task >= 0) continue;
    if (worker.process == nullptr)
      if (Status status = start(worker); !status.ok()) {
        if (!answered_) return status;
        // What was found so far stays found.
        worker.process.reset();
        answers[next++].emplace(std::move(status));
        continue;
      }
    // One that has gone meanwhile is found when its answer is read.
    (void)send_frame(worker.process->socket(), tasks[next].message,
                     Clock::now() + kOpening);
    worker.task = static_cast<std::ptrdiff_t>(next++);
  }
  return ok_status();
}

void JobPool::wait_for_answers() {
  std::vector<pollfd> sockets;
  for (const Worker& worker : workers_)
    if (worker.task >= 0)
      sockets.push_back({worker.process->socket(), POLLIN, 0});
  poll(sockets.data(), sockets.size(), kSliceMilliseconds);
}

Result<ProblemResult> JobPool::lost(Worker& worker) {
  for (int slice = 0; slice < 10 && worker.process->is_alive(); ++slice)
    poll(nullptr, 0, kSliceMilliseconds);
  const std::string end = worker.process->end();
  worker.process.reset();
  return Status(StatusCode::kEngineFailure,
                "the process that checked it " + end);
}

// True when the worker's task is done.
bool JobPool::collect(Worker& worker, std::vector<Answer>& answers) {
  if (worker.task < 0) return false;
  pollfd socket = {worker.process->socket(), POLLIN, 0};
  if (poll(&socket, 1, 0) <= 0) return false;
  std::string text;
  const Transfer received =
      receive_frame(worker.process->socket(), text, Clock::now() + kOpening,
                    [&] { return worker.process->is_alive(); });
  answers[static_cast<std::size_t>(worker.task)] =
      received == Transfer::kDone ? answer_of(text) : lost(worker);
  worker.task = -1;
  answered_ = true;
  return true;
}

Status JobPool::run(const std::vector<JobTask>& tasks,
                    std::vector<Answer>& answers,
                    const std::function<void(std::size_t)>& progress) {
  answers.assign(tasks.size(), std::nullopt);
  workers_.resize(std::min(
      tasks.size(), static_cast<std::size_t>(std::max(options_.jobs, 1))));
  const auto done = [&answers] {
    return static_cast<std::size_t>(
        std::count_if(answers.begin(), answers.end(),
                      [](const Answer& answer) { return answer.has_value(); }));
  };
  std::size_t next = 0;
  while (done() < tasks.size() && !stop_.stopped()) {
    if (Status status = give_out(tasks, next, answers); !status.ok())
      return status;
    wait_for_answers();
    for (Worker& worker : workers_)
      if (collect(worker, answers) && progress) progress(done());
  }
  return ok_status();
}

}  // namespace attnguard
