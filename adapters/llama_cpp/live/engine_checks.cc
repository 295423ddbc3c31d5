#include "adapters/llama_cpp/live/engine_checks.h"

#include <cmath>
#include <cstdio>
#include <vector>

namespace attnguard::llama_cpp {
namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// One row of the mask; all zeros where there is no mask.
void load_mask(const AttentionNode& node, std::int64_t stream, std::int64_t row,
               std::vector<double>& to) {
  to.assign(static_cast<std::size_t>(node.key.shape[2]), 0.0);
  if (node.mask.data == nullptr) return;
  const Dtype dtype = *node.mask.dtype();
  const std::int64_t of = node.mask.shape[0] == 1 ? 0 : stream;
  decode(dtype, node.mask.at(of, 0, row),
         node.mask.bytes[3] / static_cast<std::int64_t>(dtype_size(dtype)),
         static_cast<std::int64_t>(to.size()), to.data());
}

bool mask_is_readable(const AttentionNode& node) {
  return node.mask.data == nullptr || node.mask.dtype().has_value();
}

std::string wrong_mask(const CellLedger& ledger, const Token& token,
                       std::int64_t cell, bool should_see) {
  std::string text = "the mask of sequence " + std::to_string(token.sequence) +
                     ", position " + std::to_string(token.position);
  text += should_see ? " hides" : " shows";
  text += " cell " + std::to_string(cell % ledger.cells_per_stream()) + ", ";
  const std::int32_t position = ledger.position(cell);
  if (position < 0) return text + "which is empty";
  if (!ledger.holds(cell, token.sequence))
    return text + "which is another sequence's, position " +
           std::to_string(position);
  return text + "which is its own position " + std::to_string(position);
}

}  // namespace

CheckOutcome check_mask(const AttentionNode& node, std::span<const Token> rows,
                        const CellLedger& ledger, const LayerRule& rule) {
  CheckOutcome outcome;
  if (!mask_is_readable(node)) return outcome;
  const std::int64_t per_stream = node.query.shape[2];
  const std::int64_t cells = node.key.shape[2];
  std::vector<double> mask;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Token& token = rows[r];
    const auto index = static_cast<std::int64_t>(r);
    const std::int64_t stream = index / per_stream;
    const std::int64_t first =
        (node.first_stream + stream) * ledger.cells_per_stream();
    load_mask(node, stream, index % per_stream, mask);
    for (std::int64_t j = 0; j < cells && ledger.contains(first + j); ++j) {
      const bool sees = std::isfinite(mask[static_cast<std::size_t>(j)]);
      const bool should = ledger.holds(first + j, token.sequence) &&
                          rule.sees(token.position, ledger.position(first + j));
      ++outcome.judged;
      if (sees == should || outcome.wrong++ > 0) continue;
      outcome.kind = should ? FindingKind::kMiss : FindingKind::kLeak;
      outcome.row = index;
      outcome.message = wrong_mask(ledger, token, first + j, should);
    }
  }
  return outcome;
}

CheckOutcome check_weights(const AttentionNode& node) {
  CheckOutcome outcome;
  const Place& weights = node.weights;
  if (weights.data == nullptr || !mask_is_readable(node)) return outcome;
  const std::int64_t cells = weights.shape[3];
  std::vector<double> mask, row(static_cast<std::size_t>(cells));
  const auto complain = [&](std::int64_t s, std::int64_t h, std::int64_t i,
                            const std::string& what) {
    if (outcome.wrong++ > 0) return;
    outcome.kind = FindingKind::kMass;
    outcome.row = s * weights.shape[2] + i;
    outcome.head = h;
    outcome.message = "head " + std::to_string(h) + ", row " +
                      std::to_string(outcome.row) + " of the ubatch: " + what;
  };
  for (std::int64_t s = 0; s < weights.shape[0]; ++s)
    for (std::int64_t i = 0; i < weights.shape[2]; ++i) {
      load_mask(node, s, i, mask);
      for (std::int64_t h = 0; h < weights.shape[1]; ++h) {
        decode(Dtype::kFp32, weights.at(s, h, i), 1, cells, row.data());
        double sum = 0;
        std::int64_t hidden = -1, seen = 0;
        for (std::int64_t j = 0; j < cells; ++j) {
          const double weight = row[static_cast<std::size_t>(j)];
          const bool masked = !std::isfinite(mask[static_cast<std::size_t>(j)]);
          if (!masked) ++seen;
          if (hidden < 0 && (masked ? weight != 0 : !(weight >= 0))) hidden = j;
          sum += weight;
        }
        ++outcome.judged;
        if (seen == 0) continue;  // No row of a sequence is like that.
        const double bound =
            (5 * std::sqrt(static_cast<double>(seen)) + 2) * 0x1p-24;
        if (hidden >= 0)
          complain(s, h, i,
                   "weight " +
                       number_text(row[static_cast<std::size_t>(hidden)]) +
                       " on cell " + std::to_string(hidden));
        else if (!(sum <= 1 + bound) ||
                 (node.sinks == nullptr && !(sum >= 1 - bound)))
          complain(s, h, i,
                   "weights sum to " + number_text(sum) +
                       " instead of 1 (bound " + number_text(bound) + ")");
      }
    }
  return outcome;
}

}  // namespace attnguard::llama_cpp
