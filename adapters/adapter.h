// How engines get into the command: an adapter opens engines by name.
//
// An engine specification is "adapter:engine" with options after commas:
//   builtin:tiled      ggml:flash,kv=q8_0      ggml:softmax,path=/opt/llama/lib
//
// Adding an adapter: a folder beside this file that defines an Adapter, and a
// line in ci/adapter_table.cc.
#ifndef ATTNGUARD_ADAPTERS_ADAPTER_H_
#define ATTNGUARD_ADAPTERS_ADAPTER_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/engine/engine.h"

namespace attnguard {

struct EngineListing {
  std::string name;     // "builtin:wrong_axis"
  std::string summary;  // One line; a known-bad engine says so.
};

// The part of the specification behind the adapter's name.
struct EngineSpec {
  std::string full;                            // as given: "ggml:flash,kv=q8_0"
  std::string engine;                          // "flash"
  std::map<std::string, std::string> options;  // {"kv": "q8_0"}
};

struct Adapter {
  std::string_view name;  // "builtin"
  std::string_view summary;

  // The engines it has, whether or not their library is installed here.
  std::vector<EngineListing> (*list)();

  // kNotFound: the engine's library is not on this machine, the message says
  // where it was looked for and how to get it. kInvalidArgument: no such
  // engine or option, the message names the nearest known one.
  Result<Engine> (*open)(const EngineSpec& spec);
};

// Splits "adapter:engine,option=value,..." ; `adapter` receives the first
// part. kInvalidArgument on a malformed text or a repeated option.
Result<EngineSpec> parse_engine_spec(std::string_view text,
                                     std::string& adapter);

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_ADAPTER_H_
