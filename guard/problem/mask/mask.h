// What is allowed: true = query q may attend to key kv.
//
// A mask is one or more terms joined with '+', and a key is allowed when every
// term allows it: "causal_bottom_right+sliding_window(left=4,right=0)". A term
// is a kind (one file in this folder, one line in mask_table.cc) with integer
// parameters; a parameter that holds a list joins its integers with ':', as in
// "documents(lengths=5:3:8)". Nothing is ever guessed: alignment and window
// conventions that differ between engines have names of their own.
//
// Cross-attention is no kind of its own: it is "full" with seq_len_kv unlike
// seq_len_q. Padding on the right is none either: it is a length per batch
// entry.
#ifndef ATTNGUARD_GUARD_PROBLEM_MASK_MASK_H_
#define ATTNGUARD_GUARD_PROBLEM_MASK_MASK_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guard/base/status.h"
#include "guard/problem/key_ranges.h"

namespace attnguard {

struct Problem;

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
  bool list = false;  // One or more integers, joined with ':'.
};

// Parameter values, in the order of the kind's `parameters`. Every parameter
// has at least one integer.
class MaskValues {
 public:
  std::size_t size() const { return lists_.size(); }
  bool empty() const { return lists_.empty(); }

  // The value of a parameter that is no list.
  std::int64_t operator[](std::size_t i) const { return lists_[i].front(); }

  const std::vector<std::int64_t>& list(std::size_t i) const {
    return lists_[i];
  }
  void push_back(std::vector<std::int64_t> list) {
    lists_.push_back(std::move(list));
  }
  void set(std::size_t i, std::vector<std::int64_t> list) {
    lists_[i] = std::move(list);
  }

  friend bool operator==(const MaskValues&, const MaskValues&) = default;

 private:
  std::vector<std::vector<std::int64_t>> lists_;
};

struct MaskKind {
  std::string_view name;
  std::string_view summary;  // One line; names the engines that mean this.
  std::span<const MaskParameter> parameters;

  // Appends the allowed keys of a row, within [0, seq_len_kv).
  void (*allowed)(const MaskValues& values, const RowPlace& row,
                  KeyRanges& out);

  // Two kinds with the same non-empty group exclude each other in one mask.
  std::string_view exclusive_group;

  // The rest is absent where there is nothing to say.

  // Says what is wrong with values that no problem could make right; parse
  // calls it, so that `allowed` meets only values that passed.
  Status (*check)(const MaskValues& values) = nullptr;

  // Says why the values do not fit the problem, naming the field and the fix.
  Status (*validate)(const MaskValues& values,
                     const Problem& problem) = nullptr;

  // Cuts the values to what fits a problem that was made smaller.
  void (*shrink)(MaskValues& values, const Problem& problem) = nullptr;
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

  // Whether the mask fits the problem's lengths and batch; Problem::validate
  // asks it. Masks of one row's place alone, such as windows, always do.
  Status validate(const Problem& problem) const;

  // This mask without one of its terms; full when none is left.
  Mask without(std::size_t term) const;

  // This mask with what lies beyond a smaller problem's lengths and batch cut
  // away.
  Mask shrunk_to(const Problem& problem) const;

  friend bool operator==(const Mask&, const Mask&) = default;

 private:
  std::vector<MaskTerm> terms_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_MASK_MASK_H_
