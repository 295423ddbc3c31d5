#include <algorithm>
#include <array>
#include <string>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"
#include "guard/problem/problem.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 2> kBidirectionalSpansParameters = {{
    {"begin", 0, true, 0, "first key of each span, rising", true},
    {"length", 0, true, 0, "tokens of each span", true},
}};

Status check_bidirectional_spans(const MaskValues& values) {
  const auto& begin = values.list(0);
  const auto& length = values.list(1);
  if (begin.size() != length.size())
    return invalid_argument(
        "begin has " + std::to_string(begin.size()) + " numbers and length " +
        std::to_string(length.size()) + "; give one of each per span");
  for (std::size_t i = 1; i < begin.size(); ++i)
    if (begin[i] < begin[i - 1] + length[i - 1])
      return invalid_argument(
          "begin: a span begins at " + std::to_string(begin[i]) +
          ", before the one at " + std::to_string(begin[i - 1]) +
          " ends; give spans in order, none inside another");
  return ok_status();
}

Status validate_bidirectional_spans(const MaskValues& values,
                                    const Problem& problem) {
  const std::int64_t end = values.list(0).back() + values.list(1).back();
  for (std::size_t b = 0; b < problem.seq_len_kv.size(); ++b)
    if (end > problem.seq_len_kv[b])
      return invalid_argument(
          "the last span ends at " + std::to_string(end) +
          ", beyond seq_len_kv=" + std::to_string(problem.seq_len_kv[b]) +
          " of batch entry " + std::to_string(b) +
          "; shorten it or raise seq_len_kv");
  return ok_status();
}

void shrink_bidirectional_spans(MaskValues& values, const Problem& problem) {
  auto begin = values.list(0);
  auto length = values.list(1);
  const std::int64_t most =
      *std::min_element(problem.seq_len_kv.begin(), problem.seq_len_kv.end());
  while (begin.size() > 1 && begin.back() >= most) {
    begin.pop_back();
    length.pop_back();
  }
  begin.back() = std::min(begin.back(), most);
  length.back() = std::min(length.back(), most - begin.back());
  values.set(0, std::move(begin));
  values.set(1, std::move(length));
}

void append_row(const MaskValues& values, const RowPlace& row, KeyRanges& out) {
  const auto& begins = values.list(0);
  const std::int64_t own = row.bottom_right();
  std::int64_t end = own + 1;
  // The last span that begins at or before the row's own key.
  const auto after = std::upper_bound(begins.begin(), begins.end(), own);
  if (after != begins.begin()) {
    const auto span = static_cast<std::size_t>(after - begins.begin() - 1);
    const std::int64_t span_end = begins[span] + values.list(1)[span];
    if (own < span_end) end = span_end;
  }
  append_clipped(0, end, row.seq_len_kv, out);
}

}  // namespace

// Spans join the causal mask before any other term cuts it. An engine whose
// spans reach beyond its sliding window means another mask than
// "bidirectional_spans(...)+sliding_window(...)".
const MaskKind kMaskBidirectionalSpans = {
    .name = "bidirectional_spans",
    .summary =
        "causal (last query aligned with last key), or both in one span: "
        "images in Gemma 3",
    .parameters = kBidirectionalSpansParameters,
    .allowed = append_row,
    .exclusive_group = "causal",
    .check = check_bidirectional_spans,
    .validate = validate_bidirectional_spans,
    .shrink = shrink_bidirectional_spans,
};

}  // namespace attnguard
