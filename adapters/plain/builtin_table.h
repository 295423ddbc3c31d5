// The built-in engines, one per file in this folder; builtin.cc lists them.
#ifndef ATTNGUARD_ADAPTERS_PLAIN_BUILTIN_TABLE_H_
#define ATTNGUARD_ADAPTERS_PLAIN_BUILTIN_TABLE_H_

#include <span>
#include <string_view>

#include "guard/engine/engine.h"

namespace attnguard {

struct BuiltinEngine {
  std::string_view name;     // "tiled": opened as "builtin:tiled"
  std::string_view summary;  // One line; a faulty one begins "known bad: ".

  // The engine without its name and description, which the table gives it.
  Engine (*make)();
};

// Correct engines first.
std::span<const BuiltinEngine* const> all_builtin_engines();

extern const BuiltinEngine kBuiltinReference;
extern const BuiltinEngine kBuiltinTextbook;
extern const BuiltinEngine kBuiltinTiled;
extern const BuiltinEngine kBuiltinWrongAxis;

extern const BuiltinEngine kBuiltinNoMask;
extern const BuiltinEngine kBuiltinCausalOffByOne;
extern const BuiltinEngine kBuiltinMaskAfterSoftmax;
extern const BuiltinEngine kBuiltinDropsLastKey;
extern const BuiltinEngine kBuiltinDropsLastTile;
extern const BuiltinEngine kBuiltinWrongKvHead;
extern const BuiltinEngine kBuiltinWrongScale;
extern const BuiltinEngine kBuiltinStaleRow;
extern const BuiltinEngine kBuiltinOverwritesInput;
extern const BuiltinEngine kBuiltinOverruns;
extern const BuiltinEngine kBuiltinNondeterministic;
extern const BuiltinEngine kBuiltinThrows;
}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PLAIN_BUILTIN_TABLE_H_
