// The attnguard command as a function, so that tests drive what users run.
#ifndef ATTNGUARD_CI_CLI_H_
#define ATTNGUARD_CI_CLI_H_

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "guard/base/date.h"

namespace attnguard {

// What the command has to know of where it runs.
struct Surroundings {
  bool out_is_terminal = false;  // Colour makes sense.
  bool err_is_terminal = false;  // A progress line makes sense.
  bool no_color = false;         // NO_COLOR is set, or the terminal is dumb.

  // The program that runs engines for `check`, see ci/isolate; empty: engines
  // run in this process.
  std::string worker;

  bool catch_signals = false;  // SIGINT and SIGTERM end a run with a report.

  // This process checks what it is told there, see ci/run; -1: no.
  int job_socket = -1;
  // The words of the command line, for processes that read it too.
  std::vector<std::string> words;

  // Where a search for attnguard.yaml begins; empty: there is none.
  std::string folder;

  // The day on which suppressions are judged; left out: today.
  std::optional<Date> today;

  // GitHub's job summary, where --format github writes one; empty: nowhere.
  std::string job_summary;
};

// Exit codes. Of several engines the worst counts, in the order of this list.
constexpr int kExitUsage = 2;         // Usage or policy error; nothing ran.
constexpr int kExitViolation = 1;     // A property does not hold.
constexpr int kExitEngineError = 3;   // The engine failed.
constexpr int kExitInconclusive = 4;  // No evidence, or nothing checked.
constexpr int kExitPass = 0;          // Checked, and nothing is wrong.

// Runs one command line; argv[0] is the program's name. The report and the
// lists go to `out`, everything else to `err`. Returns the exit code; never
// throws.
int run_command(int argc, const char* const* argv, std::ostream& out,
                std::ostream& err, const Surroundings& surroundings = {});

}  // namespace attnguard

#endif  // ATTNGUARD_CI_CLI_H_
