#include <algorithm>
#include <array>
#include <string>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"
#include "guard/problem/problem.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kDocumentsParameters = {{
    {"lengths", 0, true, 0,
     "tokens of each document, in order; 0 is an empty one, and what is left "
     "of the row is padding that sees nothing",
     true},
}};

Status validate_documents(const MaskValues& values, const Problem& problem) {
  for (std::size_t b = 0; b < problem.seq_len_kv.size(); ++b) {
    std::int64_t left = problem.seq_len_kv[b];
    for (std::int64_t length : values.list(0)) {
      left -= length;
      if (left >= 0) continue;
      return invalid_argument("lengths sum to more than seq_len_kv=" +
                              std::to_string(problem.seq_len_kv[b]) +
                              " of batch entry " + std::to_string(b) +
                              "; shorten them or raise seq_len_kv");
    }
  }
  return ok_status();
}

void shrink_documents(MaskValues& values, const Problem& problem) {
  std::vector<std::int64_t> lengths;
  std::int64_t left =
      *std::min_element(problem.seq_len_kv.begin(), problem.seq_len_kv.end());
  for (std::int64_t length : values.list(0)) {
    if (left == 0 && !lengths.empty()) break;
    lengths.push_back(std::min(length, left));
    left -= lengths.back();
  }
  values.set(0, std::move(lengths));
}

}  // namespace

// A query belongs to the document of its own token: the last query is the last
// key. Add "+causal_bottom_right" for causal documents.
const MaskKind kMaskDocuments = {
    .name = "documents",
    .summary =
        "documents packed into one row, each seeing itself alone: segment "
        "ids, position resets, block-diagonal masks",
    .parameters = kDocumentsParameters,
    .allowed =
        [](const MaskValues& values, const RowPlace& row, KeyRanges& out) {
          const std::int64_t own = row.bottom_right();
          std::int64_t begin = 0;
          for (std::int64_t length : values.list(0)) {
            if (own < begin) return;
            if (own < begin + length)
              append_clipped(begin, begin + length, row.seq_len_kv, out);
            begin += length;
          }
        },
    .exclusive_group = "documents",
    .validate = validate_documents,
    .shrink = shrink_documents,
};

}  // namespace attnguard
