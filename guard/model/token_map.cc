#include "guard/model/token_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace attnguard {
namespace {

constexpr std::int64_t kMostTokens = 24;
constexpr std::int64_t kTokensOfACleanMap = 8;

char sign(bool moved, bool may) {
  if (may) return moved ? '#' : 'o';
  return moved ? 'X' : '.';
}

}  // namespace

bool is_wrong(const InfluenceMap& map) {
  return std::ranges::any_of(map.cells, [](const std::string& row) {
    return row.find_first_of("Xo") != std::string::npos;
  });
}

Result<InfluenceMap> token_map(ModelCheckContext& context, std::int64_t size,
                               bool token_by_token) {
  const auto count = static_cast<std::size_t>(size);
  const std::int64_t sizes[] = {token_by_token ? 1 : size};
  const std::span<const std::int32_t> tokens(context.tokens);
  const Result<Logits> before =
      context.runner.in_pieces(tokens.first(count), sizes);
  if (!before.ok()) return before.status();
  InfluenceMap map;
  map.problem = fmt::format("{} tokens, {}", size,
                            token_by_token ? "token by token" : "in one pass");
  map.cells.assign(count, std::string(count, '?'));
  for (std::size_t column = 0; column < count; ++column) {
    Tokens changed(tokens.begin(), tokens.begin() + size);
    changed[column] =
        context.replaced_from(static_cast<std::int64_t>(column), 3)[column];
    const Result<Logits> after = context.runner.in_pieces(changed, sizes);
    if (!after.ok()) return after.status();
    for (std::size_t row = 0; row < count; ++row) {
      const auto i = static_cast<std::int64_t>(row);
      const bool moved = context.differs_exactly(
          compare_rows(before.value().row(i), after.value().row(i)));
      map.cells[row][column] = sign(moved, column <= row);
    }
  }
  return map;
}

Result<InfluenceMap> smallest_token_map(ModelCheckContext& context) {
  const std::int64_t most = std::min(kMostTokens, context.length());
  for (const std::int64_t size : {2, 3, 4, 5, 6, 8, 12, 16, 24}) {
    if (size > most) break;
    for (const bool token_by_token : {false, true}) {
      if (token_by_token && !context.model.incremental) continue;
      Result<InfluenceMap> map = token_map(context, size, token_by_token);
      if (!map.ok() || is_wrong(map.value())) return map;
    }
  }
  return token_map(context, std::min(kTokensOfACleanMap, most), false);
}

}  // namespace attnguard
