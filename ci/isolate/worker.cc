#include "ci/isolate/worker.h"

#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "ci/isolate/messages.h"
#include "ci/isolate/process.h"
#include "ci/isolate/served_call.h"
#include "ci/isolate/tripwire.h"
#include "ci/isolate/wire.h"

namespace attnguard {
namespace {

// Out of the way of engines that close or reuse small descriptors.
constexpr int kHighDescriptor = 200;

constexpr int kExitNotStarted = 2;

// When memory ends, the engine's process goes and the run goes on.
void volunteer_for_the_oom_killer() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  constexpr std::string_view kScore = "500";
  if (write(fd, kScore.data(), kScore.size()) < 0) {
    // Then it is as likely to go as the other.
  }
  close(fd);
}

int moved_high(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

bool is_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

// Runs a callback; what it throws becomes the reply.
template <typename Callback>
Reply replied(Callback callback) {
  Reply reply;
  try {
    callback(reply);
  } catch (const std::exception& error) {
    reply.outcome = Reply::Outcome::kException;
    reply.text = error.what();
  } catch (...) {
    reply.outcome = Reply::Outcome::kOtherException;
  }
  return reply;
}

Hello hello_of(const Result<Engine>& opened) {
  Hello hello;
  hello.code = opened.status().code();
  hello.message = opened.status().message();
  if (!opened.ok()) return hello;
  const Engine& engine = opened.value();
  hello.name = engine.name;
  hello.description = engine.description;
  hello.dtypes = engine.capabilities.dtypes;
  hello.features = engine.capabilities.features;
  hello.deterministic = engine.capabilities.deterministic;
  hello.has_numerics = engine.capabilities.numerics != nullptr;
  hello.has_unsupported = engine.capabilities.unsupported != nullptr;
  hello.has_append = engine.append != nullptr;
  return hello;
}

Result<Engine> opened(const EngineOpener& open, const std::string& spec) {
  try {
    return open(spec);
  } catch (const std::exception& error) {
    return Status(
        StatusCode::kEngineFailure,
        "engine '" + spec +
            "' threw an exception while it was opened: " + error.what());
  } catch (...) {
    return Status(StatusCode::kEngineFailure,
                  "engine '" + spec +
                      "' threw something that is not a std::exception while "
                      "it was opened");
  }
}

class Server {
 public:
  Server(Engine engine, Tripwire& tripwire)
      : engine_(std::move(engine)), tripwire_(tripwire), calls_(engine_) {}

  Reply answer(const Request& request) {
    if (request.threads != threads_)
      omp_set_num_threads(static_cast<int>(request.threads));
    threads_ = request.threads;
    return replied([&](Reply& reply) { answer(request, reply); });
  }

 private:
  void answer(const Request& request, Reply& reply) {
    const Status known = calls_.remember(request);
    if (!known.ok()) return set(known, reply);
    const Problem& problem = calls_.problem(request);
    switch (request.ask) {
      case Ask::kNumerics:
        reply.numerics = numerics_of(engine_, problem);
        return;
      case Ask::kUnsupported:
        if (engine_.capabilities.unsupported)
          reply.text = engine_.capabilities.unsupported(problem);
        return;
      case Ask::kRun:
      case Ask::kAppend:
        break;
    }
    if (Status status = tripwire_.expose(request.ranges); !status.ok())
      return set(status, reply);
    set(calls_.serve(request, tripwire_), reply);
    tripwire_.rearm();
  }

  static void set(const Status& status, Reply& reply) {
    reply.code = status.code();
    reply.text = status.message();
  }

  Engine engine_;
  Tripwire& tripwire_;
  ServedCalls calls_;
  std::int64_t threads_ = 0;
};

// Returns the exit code, when the other process has gone or cannot be reached.
int serve(int socket, Server& server) {
  std::string bytes;
  while (receive_frame(socket, bytes, kForever, nullptr) == Transfer::kDone) {
    Request request;
    if (!decode(bytes, request)) return kExitConnectionLost;
    if (send_frame(socket, encode(server.answer(request)), kForever) !=
        Transfer::kDone)
      return kExitConnectionLost;
  }
  return 0;
}

}  // namespace

bool is_worker(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == kWorkerCommand;
}

int run_worker(int argc, const char* const* argv, const EngineOpener& open) {
  // The engine's process ends with the one that started it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 5 || !is_socket(kWorkerSocket)) {
    std::fputs("attnguard: error: 'attnguard check' starts this command\n",
               stderr);
    return kExitNotStarted;
  }
  if (getppid() != std::atoi(argv[4])) return kExitNotStarted;
  // It is no longer in the terminal's foreground, but may complain there.
  signal(SIGTTOU, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  volunteer_for_the_oom_killer();
  const int socket = moved_high(kWorkerSocket);
  const Result<Tripwire*> tripwire = Tripwire::set_up(kWorkerMemory);
  close(kWorkerMemory);
  // Before the engine opens: some size their thread pools then.
  omp_set_num_threads(std::max(std::atoi(argv[3]), 1));
  const Result<Engine> engine =
      tripwire.ok() ? opened(open, argv[2]) : Result<Engine>(tripwire.status());
  int code = 0;
  if (send_frame(socket, encode(hello_of(engine)), kForever) !=
      Transfer::kDone) {
    code = kExitConnectionLost;
  } else if (engine.ok()) {
    Server server(engine.value(), *tripwire.value());
    code = serve(socket, server);
  }
  // What the engine would do at exit is of no interest to anybody.
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace attnguard
