#include "guard/model/logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace attnguard {

RowDifference compare_rows(std::span<const float> a, std::span<const float> b) {
  RowDifference out;
  for (std::size_t v = 0; v < a.size(); ++v) {
    for (const float value : {a[v], b[v]})
      if (std::isfinite(value))
        out.scale = std::max(out.scale, std::abs(static_cast<double>(value)));
    if (std::bit_cast<std::uint32_t>(a[v]) ==
        std::bit_cast<std::uint32_t>(b[v]))
      continue;
    out.same_bits = false;
    double difference = std::abs(static_cast<double>(a[v]) - b[v]);
    if (std::isnan(difference))
      difference = std::numeric_limits<double>::infinity();
    if (out.entry >= 0 && difference <= out.largest) continue;
    out.largest = difference;
    out.entry = static_cast<std::int64_t>(v);
  }
  return out;
}

double negative_log_likelihood(std::span<const float> row, std::int32_t token) {
  double top = -std::numeric_limits<double>::infinity();
  for (const float value : row) top = std::max(top, double{value});
  double sum = 0;
  for (const float value : row) sum += std::exp(value - top);
  return std::log(sum) + top - row[static_cast<std::size_t>(token)];
}

std::string short_number(double value) { return fmt::format("{:.3g}", value); }

}  // namespace attnguard
