// The address code of a key: (batch entry, KV head, position) in binary, as
// small odd integers in the columns of V. When a probe leaves a row with one
// dominant key, the row's output is that key's code, so it says *whose* key
// was read: visibility, head map, sequence isolation and addressing at once.
//
// With enough columns each holds one bit (+-1) and the columns left over hold
// hash bits of the address, which tell a mixture of keys from a single one.
// With few columns each holds `bits_per_column` bits as an odd integer of
// magnitude below 2^bits_per_column, exact in every dtype up to 8 bits.
#ifndef ATTNGUARD_GUARD_PROBE_ADDRESS_CODE_H_
#define ATTNGUARD_GUARD_PROBE_ADDRESS_CODE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

struct KeyAddress {
  std::int64_t batch = 0;
  std::int64_t kv_head = 0;
  std::int64_t kv_index = 0;

  friend bool operator==(const KeyAddress&, const KeyAddress&) = default;
};

class AddressCode final : public ValuePattern {
 public:
  // nullptr when `columns` are too few for the problem's addresses.
  static std::shared_ptr<const AddressCode> make(const Problem& problem,
                                                 std::int64_t columns);

  std::string name() const override { return "address"; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override;

  int bits_per_column() const { return bits_per_column_; }

  // Largest magnitude of a column.
  double amplitude() const {
    return static_cast<double>((1 << bits_per_column_) - 1);
  }

  // The address whose code is within `tolerance` of the row in every column,
  // or nullopt when the row is no single key's code.
  std::optional<KeyAddress> decode(const double* row, double tolerance) const;

 private:
  AddressCode() = default;
  std::uint64_t pack(std::int64_t batch, std::int64_t kv_head,
                     std::int64_t kv_index) const;

  std::int64_t columns_ = 0;
  std::int64_t address_columns_ = 0;
  int bits_per_column_ = 1;
  int head_bits_ = 0;
  int position_bits_ = 0;
  std::int64_t batch_ = 1, num_kv_heads_ = 1, len_kv_ = 1;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_ADDRESS_CODE_H_
