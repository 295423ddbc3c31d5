// Which inputs move which rows, measured: the smallest picture of a bug.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_INFLUENCE_MAP_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_INFLUENCE_MAP_H_

#include <cstdint>

#include "guard/base/status.h"
#include "guard/engine/engine.h"
#include "guard/finding/result.h"

namespace attnguard {

// Perturbs one token at a time (its key, its value, and the query of the row
// that is the same token under the mask's alignment) and compares the rows of
// (batch, head) bit for bit with the unperturbed call. At most `most_tokens`
// rows and columns, placed so that the row `query` and the key `key` are
// inside (-1: from the start). Costs one engine call per column and one more.
// There is no map, and the status says why, when the entry has no row or no key
// (kInvalidArgument), the engine fails (its own status), or it takes more than
// 10 s for it or declares itself non-deterministic (kUnsupported).
Result<InfluenceMap> draw_influence_map(const Engine& engine,
                                        const Problem& problem,
                                        std::uint64_t seed, std::int64_t batch,
                                        std::int64_t head, std::int64_t query,
                                        std::int64_t key,
                                        std::int64_t most_tokens = 24);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_INFLUENCE_MAP_H_
