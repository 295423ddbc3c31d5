// The adapters that this command was built with. adapter_table.cc lists them.
#ifndef ATTNGUARD_CI_ADAPTER_TABLE_H_
#define ATTNGUARD_CI_ADAPTER_TABLE_H_

#include <span>
#include <string_view>

#include "adapters/adapter.h"

namespace attnguard {

std::span<const Adapter* const> all_adapters();

// nullptr when there is no adapter of that name: it never falls back.
const Adapter* find_adapter(std::string_view name);

// Opens an engine by its full specification. kInvalidArgument for a malformed
// one or an unknown name, with the nearest known name; otherwise what the
// adapter says.
Result<Engine> open_engine(std::string_view spec);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ADAPTER_TABLE_H_
