#include "ci/lint/lint.h"

#include <algorithm>

#include "ci/cli.h"
#include "ci/lint/reader.h"

namespace attnguard::lint {

std::size_t FileResult::violations() const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Finding& finding) { return !finding.note; }));
}

FileResult lint_model(const Model& model) {
  FileResult result{.file = model.file, .status = {}};
  result.notes = model.notes;
  Evaluator evaluator;
  std::vector<Seen> seen;
  for (Attention& attention : find_attention(model)) {
    ++(attention.fused ? result.fused : result.plain);
    const Masks masks = masks_before(attention, evaluator);
    for (const Rule* rule : all_rules())
      if (rule->one != nullptr)
        rule->one(attention, masks, evaluator, result.findings);
    seen.push_back({std::move(attention), masks.any()});
    evaluator.forget();  // Masks are large, and each layer may have its own.
  }
  for (const Rule* rule : all_rules())
    if (rule->all != nullptr) rule->all(model, seen, result.findings);
  std::stable_partition(result.findings.begin(), result.findings.end(),
                        [](const Finding& finding) { return !finding.note; });
  result.notes.insert(result.notes.end(), evaluator.notes().begin(),
                      evaluator.notes().end());
  return result;
}

FileResult lint_file(const std::string& path) {
  const Result<std::shared_ptr<const Model>> model = read_model(path);
  if (model.ok()) return lint_model(*model.value());
  return {.file = path, .status = model.status()};
}

int exit_code(const std::vector<FileResult>& results) {
  bool found = false, nothing = results.empty();
  for (const FileResult& result : results) {
    if (!result.status.ok()) return kExitUsage;
    found |= result.violations() > 0;
    nothing |= result.plain + result.fused == 0;
  }
  return found ? kExitViolation : nothing ? kExitInconclusive : kExitPass;
}

}  // namespace attnguard::lint
