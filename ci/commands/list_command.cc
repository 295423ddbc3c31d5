// `attnguard list`: what there is to choose from.
#include <algorithm>
#include <array>
#include <ostream>

#include "ci/adapter_table.h"
#include "ci/command_table.h"
#include "ci/lint/rule.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/model/model_check.h"
#include "guard/pipeline.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

struct Line {
  std::string name;
  std::string summary;
};

// Names, and summaries that start in one column.
void print_lines(const std::vector<Line>& lines, std::ostream& out) {
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, line.name.size());
  for (const Line& line : lines)
    out << line.name << std::string(width - line.name.size() + 2, ' ')
        << line.summary << '\n';
}

void list_engines(const Policy&, std::ostream& out) {
  for (const Adapter* adapter : all_adapters()) {
    if (adapter != all_adapters().front()) out << '\n';
    out << "# " << adapter->name << ": " << adapter->summary << '\n';
    std::vector<Line> lines;
    for (const EngineListing& engine : adapter->list())
      lines.push_back({engine.name, engine.summary});
    print_lines(lines, out);
  }
}

void list_checks(const Policy&, std::ostream& out) {
  std::vector<Line> lines;
  for (const CheckInfo* check : all_checks())
    lines.push_back(
        {std::string(check->id),
         std::string(check->summary) + " (" + std::string(check->cost) + ")"});
  print_lines(lines, out);
}

void list_masks(const Policy&, std::ostream& out) {
  std::vector<Line> lines;
  for (const MaskKind* kind : all_mask_kinds()) {
    lines.push_back({std::string(kind->name), std::string(kind->summary)});
    for (const MaskParameter& parameter : kind->parameters)
      lines.push_back(
          {"  " + std::string(parameter.name) +
               (parameter.list ? "=N:N:..." : "=N"),
           std::string(parameter.help) +
               (parameter.required
                    ? "; required"
                    : "; default " + std::to_string(parameter.fallback))});
  }
  print_lines(lines, out);
}

void list_problems(const Policy& policy, std::ostream& out) {
  for (const PolicyProblem& problem : policy.problems)
    out << problem.problem.text() << '\n';
}

void list_formats(const Policy&, std::ostream& out) {
  std::vector<Line> lines;
  for (const ReportFormat* format : all_report_formats())
    lines.push_back({std::string(format->name), std::string(format->summary)});
  print_lines(lines, out);
}

void list_fields(const Policy&, std::ostream& out) {
  std::vector<Line> lines;
  for (const ProblemField& field : all_problem_fields())
    lines.push_back({std::string(field.name), std::string(field.help)});
  print_lines(lines, out);
}

void list_lint_rules(const Policy&, std::ostream& out) {
  std::vector<Line> lines;
  for (const lint::Rule* rule : lint::all_rules())
    lines.push_back({std::string(rule->id), std::string(rule->summary)});
  print_lines(lines, out);
}

void list_model_checks(const Policy&, std::ostream& out) {
  std::vector<Line> lines;
  for (const ModelCheckInfo* check : all_model_checks())
    lines.push_back(
        {std::string(check->id),
         std::string(check->summary) + " (" + std::string(check->cost) + ")"});
  print_lines(lines, out);
}

struct Topic {
  std::string_view name;
  void (*print)(const Policy& policy, std::ostream& out);
};

constexpr std::array<Topic, 8> kTopics = {{
    {"engines", list_engines},
    {"checks", list_checks},
    {"masks", list_masks},
    {"problems", list_problems},
    {"formats", list_formats},
    {"fields", list_fields},
    {"lint-rules", list_lint_rules},
    {"model-checks", list_model_checks},
}};

int run_list(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::string subject = arguments.operand();
  const std::optional<std::string> policy_file = arguments.value("--policy");
  std::vector<std::string_view> known;
  for (const Topic& topic : kTopics) known.push_back(topic.name);
  if (subject.empty())
    return usage_error(err, "list what?" + suggestion("", known).substr(1));
  const auto* topic = std::ranges::find(kTopics, subject, &Topic::name);
  if (topic == kTopics.end())
    return usage_error(err, "there is no list of '" + subject + "'" +
                                suggestion(subject, known));
  if (policy_file && topic->name != "problems")
    return usage_error(err,
                       "--policy goes only with 'attnguard list problems'");
  const std::optional<Policy> policy = read_policy(
      policy_file, err,
      topic->name == "problems" ? surroundings.folder : std::string());
  if (!policy) return kExitUsage;
  topic->print(*policy, out);
  return kExitPass;
}

}  // namespace

extern const CommandInfo kListCommand = {
    .path = "list",
    .summary = "Print what there is to choose from",
    .operand = {"what",
                "engines, checks, masks, problems, formats, fields, "
                "lint-rules or model-checks"},
    .options = {{"--policy", "FILE",
                 "Whose problems; default: attnguard.yaml here or "
                 "above, up to the repository's root, else built-in"}},
    .run = run_list,
};

}  // namespace attnguard
