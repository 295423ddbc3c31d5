// `attnguard selftest`: is this build of the guard any good? Runs it on every
// known defect and on what is correct, and counts.
#include <omp.h>

#include <ostream>

#include "adapters/plain/builtin.h"
#include "ci/command_table.h"
#include "ci/selftest_report.h"
#include "ci/usage.h"
#include "guard/check/check.h"
#include "guard/diagnosis/selftest.h"
#include "guard/pipeline.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kMostProblems = 1000000;

Status read_options(const Arguments& arguments, SelftestOptions& options,
                    int& threads) {
  const auto read =
      [](std::string_view name, const std::optional<std::string>& text,
         std::uint64_t lowest, std::uint64_t highest, auto& into) -> Status {
    if (!text) return ok_status();
    const Result<std::uint64_t> value =
        whole_number(name, *text, lowest, highest);
    if (!value.ok()) return value.status();
    into = static_cast<std::decay_t<decltype(into)>>(value.value());
    return ok_status();
  };
  Status status =
      read("--seed", arguments.value("--seed"), 0, UINT64_MAX, options.seed);
  if (status.ok())
    status = read("--problems", arguments.value("--problems"), 0, kMostProblems,
                  options.random_problems);
  if (status.ok())
    status = read("--threads", arguments.value("--threads"), 1, kMostThreads,
                  threads);
  const std::string format = arguments.value("--format").value_or("text");
  if (status.ok() && format != "text" && format != "json")
    return invalid_argument("--format: unknown '" + format +
                            "'; known are text and json");
  return status;
}

Result<std::vector<Engine>> correct_engines() {
  std::vector<Engine> engines;
  for (const char* name : {"reference", "tiled"}) {
    EngineSpec spec;
    spec.full = "builtin:" + std::string(name);
    spec.engine = name;
    Result<Engine> engine = kBuiltinAdapter.open(spec);
    if (!engine.ok()) return engine.status();
    engines.push_back(std::move(engine.value()));
  }
  return engines;
}

SelftestResult run(const std::vector<Engine>& engines,
                   const SelftestOptions& options, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const Verify verify = [](const Engine& engine, const Problem& problem,
                           TrialKind trial) {
    RunOptions run_options;
    run_options.draw_maps = trial == TrialKind::kDefect;
    if (trial == TrialKind::kHidden) run_options.checks = own_output_checks();
    return verify_problem(engine, problem,
                          default_policy().resolve(engine.name), run_options);
  };
  const std::vector<std::string_view> ids = check_ids();
  SelftestResult result = run_selftest(verify, ids, engines, options);
  omp_set_num_threads(before);
  return result;
}

int run_selftest_command(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  SelftestOptions options;
  int threads = 1;  // Waking others costs more than these problems do.
  const Status status = read_options(arguments, options, threads);
  if (!status.ok())
    return usage_error(err, status.message(),
                       "'attnguard selftest --help' explains the options");
  const Result<std::vector<Engine>> engines = correct_engines();
  if (!engines.ok()) return usage_error(err, engines.status().message());
  if (surroundings.err_is_terminal)
    options.progress = [&err = context.err](const std::string& engine) {
      err << "\r\x1b[K" << terminal_text(engine) << std::flush;
    };
  const SelftestResult result = run(engines.value(), options, threads);
  if (surroundings.err_is_terminal) err << "\r\x1b[K" << std::flush;
  out << (arguments.value("--format").value_or("text") == "json"
              ? selftest_json(result)
              : selftest_text(result));
  return exit_code(result.ok() ? Verdict::kPass : Verdict::kViolation);
}

}  // namespace

extern const CommandInfo kSelftestCommand = {
    .path = "selftest",
    .summary = "Run the guard on known defects and correct engines",
    .operand = {},
    .options = {{"--seed", "N", "Of the random problems; default: 1"},
                {"--problems", "N",
                 "Random problems for each correct engine; default: 300"},
                {"--threads", "N",
                 "Threads to use; default: 1, the problems are small"},
                {"--format", "text|json", "Of the report"}},
    .run = run_selftest_command,
};

}  // namespace attnguard
