// Comparing two runs of the same calls on the same shapes: they owe the same
// bits, but for a model that is declared not to be deterministic.
#ifndef ATTNGUARD_GUARD_MODEL_EXACT_H_
#define ATTNGUARD_GUARD_MODEL_EXACT_H_

#include <cstdint>
#include <string>

#include "guard/model/model_check.h"

namespace attnguard {

// Rows [first, last) of the runs. A finding for each row that moved: `like`
// with query, channel, the values and a message filled in, which ends with
// `why`: "when tokens from 5 on change".
void find_moved(const ModelCheckContext& context, const Logits& before,
                const Logits& after, std::int64_t first, std::int64_t last,
                const Finding& like, const std::string& why,
                ModelFindings& findings);

// Whether any row moved: the positive control, where some must.
bool any_moved(const ModelCheckContext& context, const Logits& before,
               const Logits& after, std::int64_t first, std::int64_t last);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_EXACT_H_
