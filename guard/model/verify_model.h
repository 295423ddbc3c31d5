// Checks a whole model: the flow is in verify_model.cc, the properties are one
// file each in this folder, listed in model_check_table.cc.
#ifndef ATTNGUARD_GUARD_MODEL_VERIFY_MODEL_H_
#define ATTNGUARD_GUARD_MODEL_VERIFY_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/finding/result.h"
#include "guard/model/model.h"

namespace attnguard {

struct ModelOptions {
  std::int64_t num_tokens = 48;  // At least 4. Fewer if the context is shorter.
  std::uint64_t seed = 1;        // Of the random tokens.

  // These instead of random ones: a real text shows the loss that a trained
  // model has. Empty: random.
  std::vector<std::int32_t> text;

  // How far logits may differ where two correct computations round unlike
  // (prefill and decode, alone and in a batch), relative to the largest logit
  // of the row: rounding * max(Model::roundoff, 2^-20). The 2^-20 is what sums
  // of thousands of fp32 products lose over the layers of a model.
  double rounding = 32;

  std::vector<std::string> checks;  // Ids; empty: all.
  bool map = true;                  // Measure the influence map.
};

// Teacher-forced loss of one pass over the text against the loss of reading it
// token by token, over the same positions. In nats per token.
struct LossGap {
  double one_pass = 0;
  double token_by_token = 0;
  double mean_difference = 0;  // Mean over positions of |difference|.
  double bound = 0;            // What rounding can make of mean_difference.
  std::int64_t positions = 0;

  // What one pass gains by reading ahead; negative: it loses.
  double gap() const { return token_by_token - one_pass; }
};

struct ModelResult {
  std::string model;
  std::string description;
  std::int64_t num_tokens = 0;
  std::uint64_t seed = 0;
  bool random_tokens = true;
  double rounding = 0;
  Verdict verdict = Verdict::kInconclusive;
  std::string note;  // Why nothing was checked.

  // In a finding, batch is the sequence, query the position whose logits are
  // wrong, key the first token that moved them (or -1), channel the entry of
  // the vocabulary that differs most.
  std::vector<CheckResult> checks;
  std::optional<LossGap> loss;
  std::optional<InfluenceMap> map;  // Rows are logits, columns tokens.

  std::int64_t model_calls = 0;
  double model_seconds = 0;  // Inside of the model.
  double guard_seconds = 0;  // Everything else.
  std::string replay;        // Filled in by the command.
};

// Never throws, prints or exits. A model that fails is an engine error; what
// it cannot do is not applicable; nothing checked is inconclusive.
ModelResult verify_model(const Model& model, const ModelOptions& options = {});

// As a run of one problem, for the reports that know runs.
RunResult as_run_result(const ModelResult& result);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_VERIFY_MODEL_H_
