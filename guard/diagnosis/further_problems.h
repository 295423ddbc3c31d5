// Problems on which explanations that agree on one problem may differ.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_FURTHER_PROBLEMS_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_FURTHER_PROBLEMS_H_

#include <vector>

#include "guard/defect/defect.h"
#include "guard/engine/engine.h"

namespace attnguard {

// First the problems of the table on which the defects show or hide, in turn,
// then relatives of the failing one: longer, decode, fewer and more queries
// than keys, heads that share keys, a batch of unlike lengths, other head
// dims, another scale. Each once and valid. Where the engine does not take a
// problem of the table, that problem in the failing one's dtype, layout and
// mask stands in its place if it takes that.
std::vector<Problem> further_problems(
    const Engine& engine, const Problem& failing,
    const std::vector<const Defect*>& defects);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_FURTHER_PROBLEMS_H_
