// The known defects as engines, "defect:ID": the reference with one thing
// wrong, one for each kind of fault that public reports tell of, and a few
// legal variants on which the guard stays silent. Run the guard on them to see
// what a fault looks like, or to learn whether a policy would find it.
#ifndef ATTNGUARD_ADAPTERS_DEFECT_DEFECTS_H_
#define ATTNGUARD_ADAPTERS_DEFECT_DEFECTS_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kDefectAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_DEFECT_DEFECTS_H_
