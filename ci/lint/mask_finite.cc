// mask-finite: a masked score must lose against any score.
#include <cmath>

#include "ci/lint/rule.h"
#include "guard/base/text.h"

namespace attnguard::lint {
namespace {

// The softmax does not know where zero is: a constant added to all scores of
// a row changes nothing (guard/check/score_shift.cc). So legal scores may lie
// anywhere in the dtype, and a masked key wins as soon as they fall below the
// number s that stands for minus infinity. It is safe only where no score can
// do so and be a number still. In place of a score that is the lowest finite
// number L itself; added to a score x it needs x + s <= L for all x that lie
// below s, i.e. 2 s <= L. Hence s must be at most L / 2: for such an s a score
// would have to use the lower half of the dtype's range, where the scores'
// own differences are coarser than 2^100 (fp32) or 16 (fp16) and nothing is
// left to weigh.
bool can_be_passed(double sentinel, int type) {
  const double lowest = lowest_of(type);
  return lowest != 0 && sentinel > lowest / 2;
}

void judge_fused(const Node& node, std::vector<Finding>& findings) {
  if (node.domain.empty() || !node.is_any({"MultiHeadAttention", "Attention"}))
    return;
  const bool multi_head = node.is("MultiHeadAttention");
  if (node.input(multi_head ? 4 : 3).empty()) return;  // No padding mask.
  const auto found = node.attributes.find("mask_filter_value");
  const double value = found != node.attributes.end() && found->second.number
                           ? *found->second.number
                           : -10000.0;
  if (!can_be_passed(value, kFloat)) return;
  findings.push_back(
      {kMaskFinite.id, node.name,
       std::string(multi_head ? "key_padding_mask" : "mask_index") +
           " is filled with mask_filter_value = " + format_double(value) +
           (found == node.attributes.end() ? " (the default)" : "") +
           ": padding wins once all other scores of a row fall below it",
       "set mask_filter_value to the dtype's lowest number", true});
}

void judge_mask_finite(const Attention& attention, const Masks& masks,
                       Evaluator&, std::vector<Finding>& findings) {
  if (attention.fused) judge_fused(*attention.node, findings);
  std::set<std::pair<const Node*, double>> told;
  for (const Fill& fill : masks.fills) {
    if (!can_be_passed(fill.value, fill.type) ||
        !told.emplace(fill.node, fill.value).second)
      continue;
    findings.push_back(
        {kMaskFinite.id, fill.node->name,
         "masked scores of the attention " + attention.node->name +
             (fill.added ? " get " : " become ") + format_double(fill.value) +
             (fill.added ? " added" : "") + ", but " + type_name(fill.type) +
             " scores reach " + format_double(lowest_of(fill.type)) +
             ": once the allowed scores of a row fall below it, masked keys "
             "take the row over",
         "use -inf, or the lowest number of " + type_name(fill.type)});
  }
}

}  // namespace

const Rule kMaskFinite = {
    .id = "mask-finite",
    .summary = "no score can fall below what stands for minus infinity",
    .explanation =
        R"(mask-finite: no score can fall below what stands for minus infinity

What it sees
  The number that masked scores become, or that is added to them: -inf, or at
  most half of the dtype's lowest number (-1.7e38 in fp32 and bf16, -32752 in
  fp16). Anything above, such as -1e4 or -1e9 in fp32, is a finding. For the
  padding masks of com.microsoft's fused operators, whose filter value is -10000
  by default, it is a note.

      legal scores        -20003  -20001  -20002
      masked as "-inf"    -10000  -10000            the masked keys win

Why it matters
  A softmax does not change when a constant is added to all scores of a row, so
  nothing in training keeps scores near zero. The check score-shift of
  'attnguard check' shows the fault in a running kernel.

Fix
  torch.finfo(dtype).min or -inf.
)",
    .one = judge_mask_finite};

}  // namespace attnguard::lint
