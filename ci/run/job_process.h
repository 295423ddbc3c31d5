// A process that checks problems for `attnguard check --jobs`: the command
// itself, which reads the same command line and then does what it is told.
#ifndef ATTNGUARD_CI_RUN_JOB_PROCESS_H_
#define ATTNGUARD_CI_RUN_JOB_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "guard/base/status.h"

namespace attnguard {

// The first word of its command line, in place of "check".
inline constexpr char kJobCommand[] = "check-worker";

// The descriptor that it is started with.
inline constexpr int kJobSocket = 3;

class JobProcess {
 public:
  // Starts `program check-worker PARENT WORDS...` with nothing on its standard
  // input, its output on this process' standard error and a process group of
  // its own, so that a Ctrl-C is for this process alone.
  static Result<std::unique_ptr<JobProcess>> start(
      const std::string& program, const std::vector<std::string>& words);
  ~JobProcess();  // Ends it at once.
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;

  int socket() const { return socket_; }
  bool is_alive() const;

  // Lets it end by itself, which takes its engines with it.
  void finish();

  // Ends it and says how it ended: "died of signal 11 (Segmentation fault)".
  std::string end();

 private:
  JobProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;
  bool ended_ = false;
};

// While there is one, the processes that a killed job process leaves behind -
// those of its engines, which the system kills with it - are this process'
// to wait for, and at its end it does: none stays a zombie.
class OrphanReaper {
 public:
  OrphanReaper();
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

 private:
  int before_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_JOB_PROCESS_H_
