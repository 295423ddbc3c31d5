#include "ci/isolate/client.h"

#include <omp.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "guard/base/text.h"

namespace attnguard {
namespace {

// A problem, those derived from it, and some to spare.
constexpr std::size_t kMostProblems = 8;

std::string doing_of(const Request& request, const Problem& problem) {
  switch (request.ask) {
    case Ask::kRun:
      return "ran attention on '" + problem.text() + "'";
    case Ask::kAppend:
      return "appended " + std::to_string(request.num_new) +
             " tokens to the cache of '" + problem.text() + "'";
    case Ask::kNumerics:
      return "said how it rounds on '" + problem.text() + "'";
    case Ask::kUnsupported:
      break;
  }
  return "said whether it supports '" + problem.text() + "'";
}

std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string EngineClient::cause_of(const WorkerProcess::Death& death) const {
  const ControlBlock& control = memory_->control();
  if (death.signal == 0)
    return "its process ended with exit code " +
           std::to_string(death.exit_code);
  std::string cause = "its process died of signal " +
                      std::to_string(death.signal) + " (" +
                      strsignal(death.signal) + ")";
  if (death.signal == SIGKILL)
    return "its process was killed by signal 9, as the system does when there "
           "is no more memory,";
  if (control.has_reason != 0) {
    // The other process may have written anything.
    const std::string_view reason(control.reason, ControlBlock::kReasonBytes);
    cause += " after an exception that nobody caught: " +
             std::string(reason.substr(0, reason.find('\0')));
  }
  if (control.signal != death.signal) return cause;
  if (control.in_idle_memory != 0)
    cause += " at an address in tensors of another call";
  else if (death.signal == SIGSEGV || death.signal == SIGBUS)
    cause += " at address " + hexadecimal(control.address);
  return cause;
}

Status EngineClient::lost(Transfer transfer, const std::string& doing) {
  const WorkerProcess::Death death =
      process_->end(transfer == Transfer::kClosed);
  process_.reset();
  problems_.clear();
  std::string cause;
  const bool cut_off =
      death.signal == 0 && death.exit_code == kExitConnectionLost;
  if (death.by_itself && transfer != Transfer::kTimeout && !cut_off)
    cause = cause_of(death);
  else if (transfer == Transfer::kTimeout)
    cause =
        "it did not finish within " +
        format_double(static_cast<double>(options_.timeout.count()) / 1000) +
        " s (--timeout) and was killed";
  else if (transfer == Transfer::kGarbage)
    cause =
        "its process answered with what is no answer, as when an engine "
        "writes to descriptors that are not its own, and was killed";
  else
    cause =
        "its process lost its connection, as when an engine closes "
        "descriptors that are not its own, and was ended";
  return {StatusCode::kEngineFailure, cause + " while it " + doing};
}

Transfer EngineClient::receive(std::string& bytes) {
  return receive_frame(process_->socket(), bytes, deadline(),
                       [this] { return process_->is_alive(); });
}

Status EngineClient::start(Hello& hello) {
  problems_.clear();
  memory_->control().clear();
  Result<std::unique_ptr<WorkerProcess>> started = WorkerProcess::start(
      options_.program, spec_, omp_get_max_threads(), memory_->fd());
  if (!started.ok()) return started.status();
  process_ = std::move(started.value());
  std::string bytes;
  Transfer received = receive(bytes);
  if (received == Transfer::kDone && !decode(bytes, hello))
    received = Transfer::kGarbage;
  if (received != Transfer::kDone)
    return {
        StatusCode::kEngineFailure,
        "engine '" + spec_ + "': " + lost(received, "was opened").message()};
  if (hello.code == StatusCode::kOk) return ok_status();
  process_.reset();
  return {hello.code, hello.message};
}

Status EngineClient::name_problem(Request& request, const Problem& problem) {
  const auto known = std::find(problems_.begin(), problems_.end(), problem);
  request.problem = known - problems_.begin();
  if (known != problems_.end()) return ok_status();
  request.problem_text = problem.text();
  const Result<Problem> parsed = Problem::parse(request.problem_text);
  if (!parsed.ok() || !(parsed.value() == problem))
    return invalid_argument("the problem's line does not say all of it: '" +
                            request.problem_text + "'");
  if (problems_.size() < kMostProblems) {
    problems_.push_back(problem);
  } else {
    request.problem = static_cast<std::int64_t>(next_problem_);
    problems_[next_problem_] = problem;
    next_problem_ = (next_problem_ + 1) % kMostProblems;
  }
  return ok_status();
}

Result<Reply> EngineClient::exchange(Request& request, const Problem& problem) {
  // One that died after its answer is an error too: of the next call.
  if (process_ && !process_->is_alive())
    return lost(Transfer::kClosed, "waited for the next call");
  if (!process_) {
    Hello hello;
    if (Status status = start(hello); !status.ok())
      return Status(StatusCode::kEngineFailure,
                    "it could not be started again: " + status.message());
  }
  memory_->control().clear();
  request.threads = omp_get_max_threads();
  if (Status status = name_problem(request, problem); !status.ok())
    return status;
  const Transfer sent =
      send_frame(process_->socket(), encode(request), deadline());
  if (sent != Transfer::kDone) return lost(sent, doing_of(request, problem));
  std::string bytes;
  const Transfer received = receive(bytes);
  if (received != Transfer::kDone)
    return lost(received, doing_of(request, problem));
  Reply reply;
  if (!decode(bytes, reply))
    return lost(Transfer::kGarbage, doing_of(request, problem));
  return reply;
}

}  // namespace attnguard
