// The other side of ci/run/job_pool.h.
#ifndef ATTNGUARD_CI_RUN_JOB_WORKER_H_
#define ATTNGUARD_CI_RUN_JOB_WORKER_H_

#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/pipeline.h"
#include "guard/policy/policy.h"

namespace attnguard {

// True for the command lines that JobProcess::start makes.
bool is_job_worker(int argc, const char* const* argv);

// Ends this process with the one that started it, and gives the command line
// of "attnguard check" that it is to read. Empty: nobody started it so.
std::vector<const char*> job_words(int argc, const char* const* argv);

// The socket that JobProcess::start gave, where no engine gets it; -1: none.
int own_job_socket();

// Says which policy it has read, and checks what it is asked until the other
// side closes the socket. Returns the exit code.
int serve_jobs(int socket, const std::vector<Engine>& engines,
               const Policy& policy, const std::string& policy_digest,
               RunOptions options);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_JOB_WORKER_H_
