#include "guard/engine/reference.h"

#include "adapters/plain/builtin_table.h"

namespace attnguard {

const BuiltinEngine kBuiltinReference = {
    .name = "reference",
    .summary = "attention in fp64, row by row: the gold reference",
    .make = reference_engine,
};

}  // namespace attnguard
