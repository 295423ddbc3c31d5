#include "ci/cli.h"

#include <exception>
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"

namespace attnguard {
namespace {

int dispatch(const Arguments& arguments, const std::string& command_line,
             std::ostream& out, std::ostream& err,
             const Surroundings& surroundings) {
  if (arguments.command() != nullptr)
    return arguments.command()->run(
        {arguments, command_line, out, err, surroundings});
  if (arguments.version)
    out << "attnguard " << command_version() << '\n';
  else
    out << arguments.help;
  return kExitPass;
}

}  // namespace

int run_command(int argc, const char* const* argv, std::ostream& out,
                std::ostream& err, const Surroundings& surroundings) {
  try {
    const Result<Arguments> arguments = parse_arguments(argc, argv);
    if (!arguments.ok())
      return usage_error(err, arguments.status().message(),
                         "'attnguard --help' and 'attnguard COMMAND --help' "
                         "show what there is");
    Surroundings with_words = surroundings;
    if (argc > 2) with_words.words.assign(argv + 2, argv + argc);
    const int code = dispatch(arguments.value(), shell_line(argc, argv), out,
                              err, with_words);
    out.flush();
    if (out.good()) return code;
    return usage_error(err, "cannot write to standard output");
  } catch (const std::exception& error) {
    usage_error(err, std::string("unexpected failure: ") + error.what());
  } catch (...) {
    usage_error(err, "unexpected failure");
  }
  return kExitEngineError;
}

}  // namespace attnguard
