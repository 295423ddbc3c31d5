// `attnguard map`: the influence map of one engine on one problem, alone.
#include <algorithm>
#include <chrono>
#include <optional>
#include <ostream>

#include "ci/adapter_table.h"
#include "ci/command_table.h"
#include "ci/isolate/isolated_engine.h"
#include "ci/map_png.h"
#include "ci/output_file.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/diagnosis/influence_map.h"
#include "guard/pipeline.h"
#include "guard/report/influence_map_svg.h"
#include "guard/report/influence_map_text.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kMostTokensDrawn = 1024;

// The request, once every value was understood.
struct MapRequest {
  Problem problem;
  std::uint64_t seed = 1;
  std::optional<std::int64_t> batch, head, query, key;
  std::int64_t tokens = 24;
  std::string engine;
  std::string format;
  bool color = false;
  IsolationOptions isolation;
  bool isolate = true;
};

// The first entry that a map can be drawn of; 0 when there is none.
std::int64_t first_drawable(const Problem& problem) {
  for (std::int64_t b = 0; b < problem.batch; ++b)
    if (problem.len_q(b) > 0 && problem.len_kv(b) > 0) return b;
  return 0;
}

// A number below `size`, which is called `of` in the message.
Status read_index(const Arguments& arguments, std::string_view option,
                  std::int64_t size, std::string_view of,
                  std::optional<std::int64_t>& into) {
  const auto text = arguments.value(option);
  if (!text) return ok_status();
  if (size < 1)
    return invalid_argument(std::string(option) + ": the problem has no " +
                            std::string(of));
  const auto number =
      whole_number(option, *text, 0, static_cast<std::uint64_t>(size - 1));
  if (!number.ok()) return number.status();
  into = static_cast<std::int64_t>(number.value());
  return ok_status();
}

Status read_place(const Arguments& arguments, MapRequest& request) {
  const Problem& p = request.problem;
  Status status =
      read_index(arguments, "--batch", p.batch, "entry", request.batch);
  if (status.ok())
    status = read_index(arguments, "--head", p.num_heads, "head", request.head);
  const std::int64_t b = request.batch.value_or(first_drawable(p));
  if (status.ok())
    status =
        read_index(arguments, "--query", p.len_q(b), "query", request.query);
  if (status.ok())
    status = read_index(arguments, "--key", p.len_kv(b), "key", request.key);
  return status;
}

Status read_numbers(const Arguments& arguments,
                    const Surroundings& surroundings, MapRequest& request) {
  if (const auto text = arguments.value("--seed")) {
    const auto seed = whole_number("--seed", *text, 0, UINT64_MAX);
    if (!seed.ok()) return seed.status();
    request.seed = seed.value();
  }
  if (const auto text = arguments.value("--tokens")) {
    const auto tokens = whole_number("--tokens", *text, 1, kMostTokensDrawn);
    if (!tokens.ok()) return tokens.status();
    request.tokens = static_cast<std::int64_t>(tokens.value());
  }
  request.isolate =
      !arguments.flag("--no-isolate") && !surroundings.worker.empty();
  request.isolation.program = surroundings.worker;
  if (const auto text = arguments.value("--timeout")) {
    const auto seconds = whole_number("--timeout", *text, 1, kMostSeconds);
    if (!seconds.ok()) return seconds.status();
    request.isolation.timeout =
        std::chrono::seconds(static_cast<std::int64_t>(seconds.value()));
  }
  return ok_status();
}

Status read_format(const Arguments& arguments, const Surroundings& surroundings,
                   MapRequest& request) {
  constexpr std::string_view kMapFormats[] = {"text", "svg", "png"};
  request.format = arguments.value("--format").value_or("text");
  if (std::ranges::find(kMapFormats, request.format) == std::end(kMapFormats))
    return invalid_argument("--format: unknown '" + request.format + "'" +
                            suggestion(request.format, kMapFormats));
  const bool to_stdout = arguments.value("--output").value_or("-") == "-";
  if (request.format == "png" && to_stdout && surroundings.out_is_terminal)
    return invalid_argument(
        "a PNG is no text for a terminal; add --output FILE.png");
  request.color =
      to_stdout && surroundings.out_is_terminal && !surroundings.no_color;
  return ok_status();
}

Status read_request(const Arguments& arguments,
                    const Surroundings& surroundings, MapRequest& request) {
  const auto engines = arguments.value("--engine");
  if (!engines)
    return invalid_argument(
        "no engine given; write e.g. --engine "
        "builtin:tiled");
  request.engine = *engines;
  const auto line = arguments.value("--problem");
  if (!line)
    return invalid_argument(
        "no problem given; write e.g. --problem 'seq_len=5 head_dim=16 "
        "mask=causal_bottom_right'");
  const Result<Problem> problem = Problem::parse(*line);
  if (!problem.ok())
    return invalid_argument("--problem '" + *line +
                            "': " + problem.status().message());
  request.problem = problem.value();
  Status status = read_place(arguments, request);
  if (status.ok()) status = read_numbers(arguments, surroundings, request);
  if (status.ok()) status = read_format(arguments, surroundings, request);
  return status;
}

// Where nothing was asked for, the map is drawn around the first row and key
// that the guard finds something wrong with.
void choose_place(const Engine& engine, MapRequest& request) {
  if (request.query || request.key) return;
  const Problem& p = request.problem;
  if (p.max_len_q() <= request.tokens && p.max_len_kv() <= request.tokens &&
      request.batch && request.head)
    return;
  RunOptions options;
  options.draw_maps = false;
  options.checks = {"visibility", "future-influence"};
  const ProblemResult result =
      verify_problem(engine, p, default_policy().resolve(engine.name), options);
  for (const CheckResult& check : result.checks)
    for (const Finding& finding : check.findings) {
      if (finding.batch < 0 || finding.batch >= p.batch || finding.query < 0)
        continue;
      const std::int64_t head = std::max<std::int64_t>(finding.head, 0);
      if (request.batch.value_or(finding.batch) != finding.batch ||
          request.head.value_or(head) != head)
        continue;
      request.batch = finding.batch;
      request.head = head;
      request.query = finding.query;
      if (finding.key >= 0) request.key = finding.key;
      return;
    }
}

// A map in which something is wrong ends with the code of a violation.
bool shows_something_wrong(const InfluenceMap& map) {
  return std::ranges::any_of(map.cells, [](const std::string& row) {
    return row.find_first_of("Xo") != std::string::npos;
  });
}

Result<std::string> drawing(const InfluenceMap& map, const MapRequest& request,
                            const Engine& engine) {
  const std::string title = engine.name + ", batch " +
                            std::to_string(map.batch) + ", head " +
                            std::to_string(map.head) + " of " + map.problem;
  if (request.format == "png") return map_png(map);
  if (request.format == "svg") return map_svg_file(map, title);
  return terminal_text(title) + "\n\n" +
         draw_influence_map(map, Painter(request.color),
                            static_cast<std::size_t>(request.tokens));
}

// Says why there is no map, in the engine's words where it failed. Without one
// nothing was checked; the code to end with.
int no_map(const Status& why, std::ostream& err) {
  const bool failed = why.code() == StatusCode::kEngineFailure;
  usage_error(err, "no map: " + why.message(),
              failed ? "'attnguard check' with the same problem says more"
                     : "nothing was checked; another --problem or --batch, or "
                       "a smaller --tokens, may have a map");
  return failed ? kExitEngineError : kExitInconclusive;
}

// A map of the place that was asked for, or else of one where something is
// wrong.
Result<InfluenceMap> drawn_map(const Engine& engine, MapRequest& request) {
  const std::string reason = unsupported_reason(engine, request.problem);
  if (!reason.empty())
    return unsupported("engine '" + engine.name +
                       "' does not take the problem: " + reason);
  choose_place(engine, request);
  return draw_influence_map(
      engine, request.problem, request.seed,
      request.batch.value_or(first_drawable(request.problem)),
      request.head.value_or(0), request.query.value_or(-1),
      request.key.value_or(-1), request.tokens);
}

int run_map(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  MapRequest request;
  Status status = read_request(arguments, surroundings, request);
  if (!status.ok())
    return usage_error(err, status.message(),
                       "'attnguard map --help' explains the options");
  const Result<Engine> engine =
      request.isolate ? open_isolated(request.engine, request.isolation)
                      : open_engine(request.engine);
  if (!engine.ok()) {
    usage_error(err, engine.status().message(),
                "'attnguard list engines' shows what there is");
    const StatusCode code = engine.status().code();
    return code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound
               ? kExitUsage
               : kExitEngineError;
  }
  OutputFile file;
  const std::string output = arguments.value("--output").value_or("-");
  if (output != "-") status = file.open(output, "map");
  if (!status.ok()) return usage_error(err, status.message());

  const Result<InfluenceMap> map = drawn_map(engine.value(), request);
  if (!map.ok()) return no_map(map.status(), err);
  const Result<std::string> drawn =
      drawing(map.value(), request, engine.value());
  status = drawn.status();
  if (status.ok() && output == "-")
    out << drawn.value();
  else if (status.ok())
    status = file.commit(drawn.value());
  if (!status.ok()) return usage_error(err, status.message());
  return shows_something_wrong(map.value()) ? kExitViolation : kExitPass;
}

}  // namespace

extern const CommandInfo kMapCommand = {
    .path = "map",
    .summary = "Draw which keys move which rows of an engine",
    .operand = {},
    .options =
        {{"--engine", "SPEC", "The engine: adapter:engine, or plugin:PATH"},
         {"--problem", "LINE", "What it runs on"},
         {"--batch", "N", "The batch entry; default: where something is wrong"},
         {"--head", "N", "The query head; default: the same"},
         {"--query", "N", "A row that the map must show"},
         {"--key", "N", "A key that the map must show"},
         {"--tokens", "N",
          "Most rows and keys of the map; default: 24. A key is a call of the "
          "engine"},
         {"--seed", "N", "Of the inputs; default: 1"},
         {"--format", "text|svg|png", "Of the map"},
         {"--output", "FILE", "Where it goes; default: standard output"},
         {"--timeout", "SECONDS",
          "Longest time of one call of the engine; default: 60"},
         {"--no-isolate", nullptr, "Run the engine in this process"}},
    .run = run_map,
};

}  // namespace attnguard
