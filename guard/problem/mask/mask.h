// What is allowed: true = query q may attend to key kv.
//
// A mask is one or more terms joined with '+', and a key is allowed when every
// term allows it: "causal_bottom_right+sliding_window(left=4,right=0)". A term
// is a kind (one file in this folder, one line in mask_table.cc) with integer
// parameters. Nothing is ever guessed: alignment and window conventions that
// differ between engines have names of their own.
#ifndef ATTNGUARD_GUARD_PROBLEM_MASK_MASK_H_
#define ATTNGUARD_GUARD_PROBLEM_MASK_MASK_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/problem/key_ranges.h"

namespace attnguard {

// Where a row stands in its own sequence.
struct RowPlace {
  std::int64_t batch = 0;
  std::int64_t q_index = 0;     // 0 <= q_index < seq_len_q
  std::int64_t seq_len_q = 0;   // of this batch entry
  std::int64_t seq_len_kv = 0;  // of this batch entry

  // The kv_index of the key that is the query's own token when the last query
  // and the last key are the same token. May be negative.
  std::int64_t bottom_right() const { return q_index + seq_len_kv - seq_len_q; }
};

struct MaskParameter {
  std::string_view name;
  std::int64_t lowest;  // Smallest legal value.
  bool required;        // false: fallback is used when it is absent.
  std::int64_t fallback;
  std::string_view help;
};

// Parameter values, in the order of the kind's `parameters`.
using MaskValues = std::vector<std::int64_t>;

struct MaskKind {
  std::string_view name;
  std::string_view summary;  // One line; names the engines that mean this.
  std::span<const MaskParameter> parameters;

  // Appends the allowed keys of a row, within [0, seq_len_kv).
  void (*allowed)(const MaskValues& values, const RowPlace& row,
                  KeyRanges& out);

  // Two kinds with the same non-empty group exclude each other in one mask.
  std::string_view exclusive_group;
};

// Every mask kind, in the order they are listed to users.
std::span<const MaskKind* const> all_mask_kinds();

// nullptr when there is no kind of that name: it never falls back.
const MaskKind* find_mask_kind(std::string_view name);

struct MaskTerm {
  const MaskKind* kind = nullptr;
  MaskValues values;

  friend bool operator==(const MaskTerm&, const MaskTerm&) = default;
};

class Mask {
 public:
  // Every key is allowed.
  Mask();

  // Parses the text form; spaces are allowed around names and values.
  // Fails with a message that names the offending word, what was expected and
  // the nearest known name.
  static Result<Mask> parse(std::string_view text);

  // The canonical text form: parse(text()) is this mask.
  std::string text() const;

  const std::vector<MaskTerm>& terms() const { return terms_; }
  bool has(std::string_view kind_name) const;

  // The keys that the row may attend to. `out` is overwritten.
  void allowed(const RowPlace& row, KeyRanges& out) const;

  friend bool operator==(const Mask&, const Mask&) = default;

 private:
  std::vector<MaskTerm> terms_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_MASK_MASK_H_
