// `attnguard explain`: the page of a check or of a lint rule.
#include <ostream>

#include "ci/command_table.h"
#include "ci/lint/rule.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/check/check.h"

namespace attnguard {
namespace {

int run_explain(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::string id = arguments.operand();
  if (id.empty())
    return usage_error(err, "explain which check?",
                       "'attnguard list checks' shows all");
  if (const lint::Rule* rule = lint::find_rule(id)) {
    out << rule->explanation;
    return kExitPass;
  }
  const CheckInfo* check = find_check(id);
  if (check == nullptr)
    return usage_error(
        err, "unknown check '" + id + "'" + suggestion(id, check_ids()));
  // The page begins with the check's name and summary.
  out << check->explanation;
  if (!check->explanation.ends_with('\n')) out << '\n';
  out << "\nCost\n  " << check->cost << '\n';
  return kExitPass;
}

}  // namespace

extern const CommandInfo kExplainCommand = {
    .path = "explain",
    .summary = "Explain a check or a lint rule",
    .operand = {"check",
                "The id; see 'attnguard list checks' and 'lint-rules'"},
    .options = {},
    .run = run_explain,
};

}  // namespace attnguard
