// `attnguard explain`: the page of a check, of kernels or of whole models, or
// of a lint rule.
#include <ostream>

#include "ci/command_table.h"
#include "ci/lint/rule.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/model/model_check.h"

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
  if (const ModelCheckInfo* check = find_model_check(id)) {
    out << check->explanation << "\nCost\n  " << check->cost << '\n';
    return kExitPass;
  }
  const CheckInfo* check = find_check(id);
  if (check == nullptr) {
    std::vector<std::string_view> known = check_ids();
    for (std::string_view other : model_check_ids()) known.push_back(other);
    for (const lint::Rule* rule : lint::all_rules()) known.push_back(rule->id);
    return usage_error(
        err, "unknown check or lint rule '" + id + "'" + suggestion(id, known));
  }
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
                "The id; see 'attnguard list checks', 'model-checks' and "
                "'lint-rules'"},
    .options = {},
    .run = run_explain,
};

}  // namespace attnguard
