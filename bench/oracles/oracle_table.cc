#include "bench/oracles/oracle_table.h"

#include <array>

namespace attnguard {

std::span<const Oracle* const> all_oracles() {
  static constexpr std::array kOracles = {
      &kOracleAllclose,
      &kOracleAllcloseLoose,
      &kOracleNmse,
      &kOracleTwiceReferenceError,
      &kOraclePerturbAndRowSum,
      &kOracleAttnguard,
  };
  return kOracles;
}

const Oracle* find_oracle(std::string_view id) {
  for (const Oracle* oracle : all_oracles())
    if (oracle->id == id) return oracle;
  return nullptr;
}

}  // namespace attnguard
