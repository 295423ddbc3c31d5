// Faults of visibility confined to some rows of a long problem: one more
// visible key in each of them, or one less.
//
// The engine that has one computes attention in fp64 and remembers it with the
// log-sum-exp of each row: for inputs that it has seen it only corrects the
// rows of the fault, so a thousand faults cost little more than one.
#ifndef ATTNGUARD_BENCH_ORACLES_LOCAL_FAULT_H_
#define ATTNGUARD_BENCH_ORACLES_LOCAL_FAULT_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "guard/engine/attention_variant.h"
#include "guard/engine/engine.h"

namespace attnguard {

enum class KeyFault {
  kExtra,    // A key behind the row's own position is visible.
  kDropped,  // A key that the row must see is not.
};

enum class Spread {
  kOneRowOneHead,
  kOneRowAllHeads,
  kTileOneHead,  // 64 rows, aligned
  kSecondHalf,   // every row of it, in all heads
  kEveryRow,     // in all heads
};

std::string_view key_fault_name(KeyFault fault);  // "one extra key"
std::string_view spread_name(Spread spread);      // "in one row of one head"

// On problems with batch 1, seq_len_q == seq_len_kv and a causal mask. The
// seed chooses the rows, the head and, for each row, the key.
struct LocalFault {
  KeyFault fault = KeyFault::kExtra;
  Spread spread = Spread::kOneRowOneHead;
  std::uint64_t seed = 1;

  // The key that the row sees in excess or misses, or -1: the row is right.
  // The row keeps at least one key.
  std::int64_t key_of(const Problem& problem, std::int64_t head,
                      std::int64_t q_index) const;
};

// The fault as an edit of the reference: what fault_engine() must give.
AttentionVariant fault_variant(const LocalFault& fault);

// What was computed so far; shared by the engines of one problem.
class FaultMemory;
std::shared_ptr<FaultMemory> make_fault_memory();

// Declares the rounding of a kernel that sums in fp32, as most are. Not to be
// called from several threads at once.
Engine fault_engine(const LocalFault& fault,
                    const std::shared_ptr<FaultMemory>& memory);

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ORACLES_LOCAL_FAULT_H_
