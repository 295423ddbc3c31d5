#include "ci/run/job_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "ci/isolate/wire.h"
#include "ci/run/job_process.h"
#include "guard/base/text.h"
#include "guard/diagnosis/match.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

constexpr int kExitNoSense = 2;

// Out of the way of engines that close or reuse small descriptors.
constexpr int kHighDescriptor = 200;

struct Question {
  std::string verb;
  std::size_t engine = 0;
  std::size_t problem = 0;
  std::string line;  // Of the smallest failing problem, for "diagnose".
};

// "VERB ENGINE PROBLEM[ LINE]"
std::optional<Question> read_question(const std::string& text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 3) return std::nullopt;
  const auto engine = parse_int(words[1]), problem = parse_int(words[2]);
  if (!engine || !problem || *engine < 0 || *problem < 0) return std::nullopt;
  Question question{std::string(words[0]), static_cast<std::size_t>(*engine),
                    static_cast<std::size_t>(*problem), ""};
  for (std::size_t i = 3; i < words.size(); ++i)
    question.line += (i > 3 ? " " : "") + std::string(words[i]);
  return question;
}

RunResult diagnosed(const Engine& engine, const Problem& problem,
                    const std::string& line, std::uint64_t seed) {
  RunResult run;
  ProblemResult& result = run.problems.emplace_back();
  result.problem_line = problem.text();
  const Result<Problem> smallest = Problem::parse(line);
  try {
    result.diagnosis = diagnose(
        engine, smallest.ok() ? smallest.value() : problem, problem, seed);
  } catch (...) {
    // What was found stays found, explained or not.
  }
  return run;
}

}  // namespace

bool is_job_worker(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == kJobCommand;
}

std::vector<const char*> job_words(int argc, const char* const* argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 3 || getppid() != std::atoi(argv[2])) return {};
  std::vector<const char*> words = {argv[0], "check"};
  words.insert(words.end(), argv + 3, argv + argc);
  return words;
}

int own_job_socket() {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(kJobSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return -1;
  const int moved = fcntl(kJobSocket, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (moved >= 0) close(kJobSocket);
  return moved;
}

int serve_jobs(int socket, const std::vector<Engine>& engines,
               const Policy& policy, const std::string& policy_digest,
               RunOptions options) {
  // Which failures are diagnosed is known when all problems are.
  options.diagnose = false;
  Policy one = policy;
  std::string text;
  Transfer sent = send_frame(socket, policy_digest, kForever);
  while (sent == Transfer::kDone &&
         receive_frame(socket, text, kForever, nullptr) == Transfer::kDone) {
    const std::optional<Question> question = read_question(text);
    if (!question || question->engine >= engines.size() ||
        question->problem >= policy.problems.size())
      return kExitNoSense;
    const Engine& engine = engines[question->engine];
    one.problems = {policy.problems[question->problem]};
    const RunResult run = question->verb == "diagnose"
                              ? diagnosed(engine, one.problems[0].problem,
                                          question->line, policy.seed)
                              : verify(engine, one, options);
    sent = send_frame(socket, find_report_format("json")->render({&run, 1}, {}),
                      kForever);
  }
  return 0;
}

}  // namespace attnguard
