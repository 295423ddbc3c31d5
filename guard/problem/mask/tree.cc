#include <algorithm>
#include <array>
#include <string>

#include "guard/problem/mask/append_clipped.h"
#include "guard/problem/mask/mask_table.h"
#include "guard/problem/problem.h"

namespace attnguard {
namespace {

constexpr std::array<MaskParameter, 1> kTreeParameters = {{
    {"parents", -1, true, 0,
     "parent of each drafted token, counted from the first of them; -1: it "
     "follows the committed tokens",
     true},
}};

Status check_tree(const MaskValues& values) {
  const auto& parents = values.list(0);
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (parents[i] >= static_cast<std::int64_t>(i))
      return invalid_argument(
          "parents: token " + std::to_string(i) + " has parent " +
          std::to_string(parents[i]) +
          ", and a parent comes before its child: give an index below " +
          std::to_string(i) + ", or -1");
  return ok_status();
}

Status validate_tree(const MaskValues& values, const Problem& problem) {
  const auto count = static_cast<std::int64_t>(values.list(0).size());
  for (std::size_t b = 0; b < problem.seq_len_kv.size(); ++b)
    if (count > problem.seq_len_kv[b])
      return invalid_argument("parents has " + std::to_string(count) +
                              " tokens, more than seq_len_kv=" +
                              std::to_string(problem.seq_len_kv[b]) +
                              " of batch entry " + std::to_string(b) +
                              "; shorten it or raise seq_len_kv");
  return ok_status();
}

void shrink_tree(MaskValues& values, const Problem& problem) {
  auto parents = values.list(0);
  const std::int64_t most =
      *std::min_element(problem.seq_len_kv.begin(), problem.seq_len_kv.end());
  if (static_cast<std::int64_t>(parents.size()) > most)
    parents.resize(static_cast<std::size_t>(std::max<std::int64_t>(most, 1)));
  values.set(0, std::move(parents));
}

void append_tree_row(const MaskValues& values, const RowPlace& row,
                     KeyRanges& out) {
  const auto& parents = values.list(0);
  const std::int64_t committed =
      row.seq_len_kv - static_cast<std::int64_t>(parents.size());
  const std::int64_t own = row.bottom_right();
  append_clipped(0, std::min(own + 1, committed), row.seq_len_kv, out);
  std::vector<std::int64_t> line;  // the token and its ancestors
  for (std::int64_t token = own - committed; token >= 0;
       token = parents[static_cast<std::size_t>(token)])
    line.push_back(committed + token);
  for (auto key = line.rbegin(); key != line.rend(); ++key)
    append_clipped(*key, *key + 1, row.seq_len_kv, out);
}

}  // namespace

// The last keys are the drafted tokens, one for each of `parents`, and the
// last query is the last of them. Queries before the tree are committed tokens
// and see what comes before them. The order of the draft is no prefix: a
// token's elder siblings stand before it and are not allowed.
const MaskKind kMaskTree = {
    .name = "tree",
    .summary =
        "the last keys are a tree of drafted tokens: each sees the committed "
        "ones, its ancestors and itself: SGLang, FlashInfer custom masks",
    .parameters = kTreeParameters,
    .allowed = append_tree_row,
    .exclusive_group = "causal",
    .check = check_tree,
    .validate = validate_tree,
    .shrink = shrink_tree,
};

}  // namespace attnguard
