#include "guard/probe/address_code.h"

#include <algorithm>
#include <cmath>

#include "guard/base/bits.h"
#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr int kMostBitsPerColumn = 8;  // exact in bf16
constexpr std::uint64_t kCheckBitsSeed = 0x61646472;

}  // namespace

std::shared_ptr<const AddressCode> AddressCode::make(const Problem& problem,
                                                     std::int64_t columns) {
  if (columns < 1) return nullptr;
  std::shared_ptr<AddressCode> code(new AddressCode);
  code->batch_ = problem.batch;
  code->num_kv_heads_ = problem.num_kv_heads;
  code->len_kv_ = std::max<std::int64_t>(problem.slots_kv(), 1);
  code->head_bits_ = bits_for(problem.num_kv_heads);
  code->position_bits_ = bits_for(code->len_kv_);
  const int bits = std::max(
      bits_for(problem.batch) + code->head_bits_ + code->position_bits_, 1);
  const std::int64_t per_column = (bits + columns - 1) / columns;
  if (per_column > kMostBitsPerColumn) return nullptr;
  code->columns_ = columns;
  code->bits_per_column_ = static_cast<int>(per_column);
  code->address_columns_ = (bits + per_column - 1) / per_column;
  return code;
}

std::uint64_t AddressCode::pack(std::int64_t batch, std::int64_t kv_head,
                                std::int64_t kv_index) const {
  const auto head = static_cast<std::uint64_t>(batch) << head_bits_ |
                    static_cast<std::uint64_t>(kv_head);
  return head << position_bits_ | static_cast<std::uint64_t>(kv_index);
}

void AddressCode::value_row(std::int64_t batch, std::int64_t kv_head,
                            std::int64_t kv_index, double* to) const {
  const std::uint64_t address = pack(batch, kv_head, kv_index);
  const std::uint64_t digit_mask = (std::uint64_t{1} << bits_per_column_) - 1;
  for (std::int64_t c = 0; c < address_columns_; ++c) {
    const std::uint64_t digit = address >> (c * bits_per_column_) & digit_mask;
    to[c] = 2.0 * static_cast<double>(digit) - amplitude();
  }
  std::uint64_t check = 0;
  for (std::int64_t c = address_columns_; c < columns_; ++c) {
    const std::int64_t bit = (c - address_columns_) % 64;
    if (bit == 0)
      check =
          derive_seed(kCheckBitsSeed + static_cast<std::uint64_t>(c), address);
    to[c] = (check >> bit & 1) != 0 ? 1.0 : -1.0;
  }
}

std::optional<KeyAddress> AddressCode::decode(const double* row,
                                              double tolerance) const {
  std::uint64_t address = 0;
  for (std::int64_t c = 0; c < address_columns_; ++c) {
    const double digit = std::nearbyint((row[c] + amplitude()) / 2);
    if (!(digit >= 0 && digit <= amplitude())) return std::nullopt;
    address |= static_cast<std::uint64_t>(digit) << (c * bits_per_column_);
  }
  KeyAddress found;
  found.kv_index = static_cast<std::int64_t>(
      address & ((std::uint64_t{1} << position_bits_) - 1));
  found.kv_head = static_cast<std::int64_t>(
      address >> position_bits_ & ((std::uint64_t{1} << head_bits_) - 1));
  found.batch =
      static_cast<std::int64_t>(address >> (position_bits_ + head_bits_));
  if (found.kv_index >= len_kv_ || found.kv_head >= num_kv_heads_ ||
      found.batch >= batch_)
    return std::nullopt;
  std::vector<double> code(static_cast<std::size_t>(columns_));
  value_row(found.batch, found.kv_head, found.kv_index, code.data());
  for (std::int64_t c = 0; c < columns_; ++c)
    if (!(std::abs(row[c] - code[static_cast<std::size_t>(c)]) <= tolerance))
      return std::nullopt;
  return found;
}

}  // namespace attnguard
