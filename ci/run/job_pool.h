// Several problems at once, each in a process of its own.
#ifndef ATTNGUARD_CI_RUN_JOB_POOL_H_
#define ATTNGUARD_CI_RUN_JOB_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ci/run/job_process.h"
#include "ci/run/stop.h"
#include "guard/base/status.h"
#include "guard/finding/result.h"

namespace attnguard {

struct JobOptions {
  std::string program;             // What is started: the command.
  std::vector<std::string> words;  // Its command line, behind "check".
  int jobs = 1;
  std::string policy_digest;               // That every process must have read.
  std::optional<std::int64_t> max_memory;  // Of all at work together, bytes.
};

// What a process is asked: "verify ENGINE PROBLEM" or "diagnose ENGINE PROBLEM
// LINE", by numbers from 0.
struct JobTask {
  std::string message;
  std::int64_t bytes = 0;  // About what it needs.
};

class JobPool {
 public:
  JobPool(JobOptions options, const StopSource& stop)
      : options_(std::move(options)), stop_(stop) {}
  ~JobPool();

  // A result is nullopt when the run was stopped before; an error says how the
  // process ended that had the task. `progress` gets the number of those that
  // are done. An error of its own: no process could be started, and nothing
  // was run.
  using Answer = std::optional<Result<ProblemResult>>;
  Status run(const std::vector<JobTask>& tasks, std::vector<Answer>& answers,
             const std::function<void(std::size_t)>& progress);

 private:
  struct Worker {
    std::unique_ptr<JobProcess> process;
    std::ptrdiff_t task = -1;  // -1: none.
  };

  Status start(Worker& worker);
  bool fits(const std::vector<JobTask>& tasks, std::size_t next) const;
  Status give_out(const std::vector<JobTask>& tasks, std::size_t& next,
                  std::vector<Answer>& answers);
  void wait_for_answers();
  bool collect(Worker& worker, std::vector<Answer>& answers);
  Result<ProblemResult> lost(Worker& worker);

  JobOptions options_;
  const StopSource& stop_;
  OrphanReaper reaper_;  // Waits after the workers have gone.
  std::vector<Worker> workers_;
  bool answered_ = false;  // A task, ever: processes can be started at all.
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_JOB_POOL_H_
