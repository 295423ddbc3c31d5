#include "guard/model/exact.h"

#include <fmt/format.h>

namespace attnguard {

void find_moved(const ModelCheckContext& context, const Logits& before,
                const Logits& after, std::int64_t first, std::int64_t last,
                const Finding& like, const std::string& why,
                ModelFindings& findings) {
  for (std::int64_t i = first; i < last; ++i) {
    const RowDifference difference = compare_rows(before.row(i), after.row(i));
    if (!context.differs_exactly(difference)) continue;
    Finding finding = like;
    finding.query = i;
    finding.channel = difference.entry;
    finding.bound = context.exact_bound();
    const auto entry = static_cast<std::size_t>(difference.entry);
    finding.observed = after.row(i)[entry];
    finding.expected = before.row(i)[entry];
    finding.message = fmt::format("the logits of token {} move by {} {}", i,
                                  short_number(difference.largest), why);
    findings.add(std::move(finding));
  }
}

bool any_moved(const ModelCheckContext& context, const Logits& before,
               const Logits& after, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i)
    if (context.differs_exactly(compare_rows(before.row(i), after.row(i))))
      return true;
  return false;
}

}  // namespace attnguard
