// How a problem becomes one call of scaled dot product attention.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_SDPA_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_SDPA_H_

#include <array>
#include <string>

#include "adapters/libtorch/kernel.h"
#include "guard/engine/engine.h"

namespace attnguard::libtorch {

// When is_causal says the mask.
enum class CausalFlag {
  kAuto,    // Where it means the same.
  kAlways,  // For every causal mask, of either alignment: a known mistake.
  kNever,   // The mask is always a tensor.
};

// What a release does with one dtype, found by trying it.
struct DtypeBehaviour {
  std::string failure;  // ATen's message; empty when it runs.
  EmptyRow empty_row = EmptyRow::kNan;
  bool narrow_sums = false;  // Sums over keys are kept in the dtype itself.
};

struct Sdpa {
  const Kernel* kernel = nullptr;
  bool weights = false;
  CausalFlag causal = CausalFlag::kAuto;
  int threads = 1;
  std::array<DtypeBehaviour, 4> behaviour;  // By Dtype.

  // Runs a row without an allowed key, and one of many keys, in each dtype.
  void find_behaviour();

  std::string unsupported(const Problem& problem) const;
  Numerics numerics(const Problem& problem) const;
  Status run(const AttentionCall& call) const;
};

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_SDPA_H_
