// `attnguard replay`: judges a call again that the live guard wrote to a file,
// and runs an engine on its inputs.
#include <algorithm>
#include <chrono>
#include <ostream>
#include <sstream>

#include "ci/adapter_table.h"
#include "ci/command_table.h"
#include "ci/isolate/isolated_engine.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/finding/result.h"
#include "guard/policy/runtime_policy.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"
#include "guard/runtime/dump_file.h"
#include "guard/runtime/replay.h"
#include "guard/runtime/rerun.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostShown = 3;  // findings of a check

struct DumpRequest {
  std::string file;
  std::optional<std::string> engine;
  std::chrono::seconds limit{60};
  bool isolate = true;
  IsolationOptions isolation;
};

Status read_request(const Arguments& arguments,
                    const Surroundings& surroundings, DumpRequest& request) {
  request.file = arguments.operand();
  request.engine = arguments.value("--engine");
  request.isolate =
      !arguments.flag("--no-isolate") && !surroundings.worker.empty();
  request.isolation.program = surroundings.worker;
  const auto limit = whole_number(
      "--time-limit", arguments.value("--time-limit").value_or("60"), 1,
      kMostSeconds);
  if (!limit.ok()) return limit.status();
  request.limit = std::chrono::seconds(limit.value());
  const auto timeout =
      whole_number("--timeout", arguments.value("--timeout").value_or("60"), 1,
                   kMostSeconds);
  if (!timeout.ok()) return timeout.status();
  request.isolation.timeout = std::chrono::seconds(timeout.value());
  return ok_status();
}

Deadline deadline_of(const DumpRequest& request) {
  return std::chrono::steady_clock::now() + request.limit;
}

void print_record(const DumpRequest& request, const DumpRecord& record,
                  std::ostream& out) {
  out << "file      " << terminal_text(request.file) << '\n'
      << "engine    " << terminal_text(record.engine) << '\n'
      << "layer     " << terminal_text(record.layer) << ", call "
      << record.call_number
      << (record.in_scratch ? " (a call that the guard made)" : "") << '\n';
  if (record.has_tensors) {
    const std::string cut = cut_text(record.problem, record.scope);
    out << "problem   " << record.problem.text() << '\n'
        << "kept      " << (cut.empty() ? "the whole call" : cut) << '\n';
  } else {
    out << "kept      what was reported; the file holds no tensors\n";
  }
  out << "recorded  " << terminal_text(record.check)
      << (record.engine_check.empty() ? "" : ": ")
      << terminal_line(record.engine_check) << " ("
      << terminal_text(record.severity) << "), "
      << counted(record.num_findings, "finding") << '\n';
  for (std::size_t n = 0; n < std::min(record.findings.size(), kMostShown); ++n)
    out << "  " << terminal_text(record.findings[n].message) << '\n';
  std::istringstream lines(record.engine_text);
  for (std::string line; std::getline(lines, line);)
    out << "  | " << terminal_line(line) << '\n';
}

void print_judged(const Rejudged& judged, std::ostream& out) {
  std::vector<Column> columns = {
      {"check", false, {}}, {"verdict", false, {}}, {"findings", true, {}}};
  for (const CheckResult& check : judged.checks) {
    columns[0].cells.push_back({check.check});
    columns[1].cells.push_back({verdict_words(check.verdict)});
    columns[2].cells.push_back({std::to_string(check.num_findings)});
  }
  for (const std::string& line : table_lines(columns, 2, Painter(false)))
    out << line << '\n';
  for (const CheckResult& check : judged.checks)
    for (std::size_t n = 0; n < std::min(check.findings.size(), kMostShown);
         ++n)
      out << "  " << check.check << ": "
          << terminal_text(check.findings[n].message) << '\n';
  if (judged.without_keys > 0)
    out << "  " << counted(judged.without_keys, "row")
        << " without keys: nothing is promised of them\n";
  if (judged.not_finite > 0)
    out << "  " << counted(judged.not_finite, "row")
        << " with NaN or Inf among the inputs: they prove nothing\n";
}

std::string rows_text(const Rejudged& judged) {
  const std::int64_t looked =
      judged.rows + judged.without_keys + judged.not_finite;
  return std::to_string(looked) + " of " + counted(judged.of_rows, "row") +
         (looked < judged.of_rows ? ": the time was over (--time-limit)" : "");
}

// Whether a recorded place was found again by the same check.
void print_confirmation(const DumpRecord& record, const Rejudged& judged,
                        std::ostream& out) {
  const auto check =
      std::ranges::find(judged.checks, record.check, &CheckResult::check);
  if (record.check == live_check_id(LiveCheck::kEngine)) {
    out << "the recorded finding is of the engine's own state, which the file "
           "has not: it cannot be judged again\n";
    return;
  }
  if (check == judged.checks.end()) {
    out << terminal_text(record.check)
        << " compares two calls, of which the file has one\n";
    return;
  }
  const bool again =
      std::ranges::any_of(record.findings, [&](const Finding& recorded) {
        return std::ranges::any_of(check->findings, [&](const Finding& found) {
          return found.batch == recorded.batch && found.head == recorded.head &&
                 found.query == recorded.query;
        });
      });
  out << (again ? "the recorded finding is confirmed\n"
                : "the recorded finding is not among them\n");
}

Result<Engine> open_asked_for(const DumpRequest& request) {
  return request.isolate ? open_isolated(*request.engine, request.isolation)
                         : open_engine(*request.engine);
}

void print_shrunk(const DumpRequest& request, const Shrunk& shrunk,
                  std::ostream& out) {
  const CutCall& part = shrunk.smallest.part;
  out << "smallest failing case (" << counted(shrunk.tried, "part")
      << " of the call tried"
      << (shrunk.finished ? "" : "; the time was over first, see --time-limit")
      << ")\n  batch entries " << part.batch.text() << ", heads "
      << part.heads.text() << ", queries " << part.queries.text() << ", keys "
      << part.keys.text() << " of the call, as the problem\n  "
      << part.problem.text() << '\n';
  if (const Finding* finding = shrunk.smallest.judged.first())
    out << "  " << terminal_text(finding->message) << '\n';
  out << "with inputs of the guard's own:\n  attnguard check --engine "
      << shell_quote(*request.engine) << " --problem "
      << shell_quote(part.problem.text()) << '\n';
}

// The engine is told the problem's mask, whatever the call's was.
void print_other_mask(const Dump& dump, std::ostream& out) {
  const Problem& problem = dump.record().problem;
  const CaptureScope& scope = dump.record().scope;
  std::int64_t rows = 0;
  KeyRanges told, said;
  for (std::int64_t b = scope.batch.first; b < scope.batch.end(); ++b)
    for (std::int64_t i = scope.queries.first;
         i < std::min(scope.queries.end(), problem.len_q(b)); ++i) {
      dump.allowed(b, i, told);
      problem.mask.allowed(problem.row(b, i), said);
      rows += told != said;
    }
  if (rows > 0)
    out << "  the mask of the recorded call differs from the problem's in "
        << std::to_string(rows) + (rows == 1 ? " query" : " queries")
        << "; the engine is run with the problem's\n";
}

int run_engine_on(const DumpRequest& request, const Dump& dump,
                  std::ostream& out, std::ostream& err) {
  const Result<Engine> engine = open_asked_for(request);
  if (!engine.ok()) {
    usage_error(err, engine.status().message(),
                "'attnguard list engines' shows what there is");
    const StatusCode code = engine.status().code();
    return code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound
               ? kExitUsage
               : kExitEngineError;
  }
  const Deadline deadline = deadline_of(request);
  const JudgedCall call = judged_call(dump);
  const Result<Rerun> run =
      rerun(engine.value(), call, runnable_part(call), deadline);
  out << "\n" << terminal_text(engine.value().name) << " on the same inputs";
  if (!run.ok()) {
    out << ": " << terminal_text(run.status().message()) << '\n';
    return run.status().code() == StatusCode::kUnsupported ? kExitInconclusive
                                                           : kExitEngineError;
  }
  out << ": " << rows_text(run.value().judged) << '\n';
  print_other_mask(dump, out);
  print_judged(run.value().judged, out);
  for (const std::string& fault : run.value().memory_faults)
    out << "  " << terminal_text(fault) << '\n';
  const Verdict verdict = run.value().judged.verdict;
  if (verdict == Verdict::kViolation)
    print_shrunk(request, shrink(engine.value(), call, run.value(), deadline),
                 out);
  if (verdict == Verdict::kPass && !run.value().memory_faults.empty()) {
    out << "\nviolation\n";
    return kExitViolation;
  }
  out << '\n' << verdict_words(verdict) << '\n';
  return exit_code(verdict);
}

int run_replay(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  DumpRequest request;
  if (Status status = read_request(arguments, surroundings, request);
      !status.ok())
    return usage_error(err, status.message());
  if (request.file.empty())
    return usage_error(err, "replay which file?",
                       "write 'attnguard replay FILE.safetensors'");
  const Result<Dump> dump = Dump::load(request.file);
  if (!dump.ok()) return usage_error(err, dump.status().message());
  const DumpRecord& record = dump.value().record();
  print_record(request, record, out);
  if (!record.has_tensors) {
    out << "\nno tensors: there is nothing to judge again"
        << (request.engine ? " and nothing to run an engine on" : "") << "\n\n"
        << verdict_words(Verdict::kInconclusive) << '\n';
    return exit_code(Verdict::kInconclusive);
  }
  const Rejudged judged = judge_call(judged_call(dump.value()), record.findings,
                                     deadline_of(request));
  out << "\nthe recorded output, judged again: " << rows_text(judged) << '\n';
  print_judged(judged, out);
  print_confirmation(record, judged, out);
  if (request.engine) return run_engine_on(request, dump.value(), out, err);
  Verdict verdict = judged.verdict;
  // Nothing wrong with one call says nothing of a check that compares two, or
  // of the engine's own state.
  const bool repeated = std::ranges::any_of(
      judged.checks,
      [&](const auto& check) { return check.check == record.check; });
  if (verdict == Verdict::kPass && !repeated) verdict = Verdict::kInconclusive;
  out << '\n' << verdict_words(verdict) << '\n';
  return exit_code(verdict);
}

}  // namespace

extern const CommandInfo kReplayCommand = {
    .path = "replay",
    .summary = "Judge a call again that the live guard wrote to a file",
    .operand = {"file", "The .safetensors file"},
    .options =
        {{"--engine", "SPEC",
          "Run this engine on the same inputs and find the smallest part of "
          "them on which it goes wrong; the exit code is then its"},
         {"--time-limit", "SECONDS",
          "Most time for judging, and for shrinking; default: 60"},
         {"--timeout", "SECONDS",
          "Longest time of one call of the engine; default: 60"},
         {"--no-isolate", nullptr, "Run the engine in this process"}},
    .run = run_replay,
};

}  // namespace attnguard
