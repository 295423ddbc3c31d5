// The engines that come with attnguard, "builtin:NAME": three correct ones
// (reference, textbook, tiled) and a set of known-bad ones, each with one
// fault that is common in the field. Run the guard on the known-bad ones to
// see what its findings look like, and to test a policy: a policy that passes
// one of them does not look for that fault.
#ifndef ATTNGUARD_ADAPTERS_PLAIN_BUILTIN_H_
#define ATTNGUARD_ADAPTERS_PLAIN_BUILTIN_H_

#include "adapters/adapter.h"

namespace attnguard {

extern const Adapter kBuiltinAdapter;

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_BUILTIN_H_
