#include "ci/cli.h"

#include <exception>
#include <ostream>

#include "ci/commands.h"
#include "ci/usage.h"

namespace attnguard {
namespace {

int dispatch(const Arguments& arguments, const std::string& command_line,
             std::ostream& out, std::ostream& err,
             const Surroundings& surroundings) {
  switch (arguments.command) {
    case Command::kCheck:
      return check_command(arguments, command_line, out, err, surroundings);
    case Command::kList:
      return list_command(arguments, out, err);
    case Command::kExplain:
      return explain_command(arguments, out, err);
    case Command::kPolicyLint:
      return policy_lint_command(arguments, out, err);
    case Command::kPolicyPrint:
      return policy_print_command(arguments, out, err);
    case Command::kSelftest:
      return selftest_command(arguments, out, err, surroundings);
    case Command::kLint:
      return lint_command(arguments, out, err);
    case Command::kVersion:
      out << "attnguard " << command_version() << '\n';
      return kExitPass;
    case Command::kHelp:
      break;
  }
  out << arguments.help;
  return kExitPass;
}

}  // namespace

std::string_view command_version() { return ATTNGUARD_VERSION; }

int run_command(int argc, const char* const* argv, std::ostream& out,
                std::ostream& err, const Surroundings& surroundings) {
  try {
    const Result<Arguments> arguments = parse_arguments(argc, argv);
    if (!arguments.ok())
      return usage_error(err, arguments.status().message(),
                         "'attnguard --help' and 'attnguard COMMAND --help' "
                         "show what there is");
    const int code = dispatch(arguments.value(), shell_line(argc, argv), out,
                              err, surroundings);
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
