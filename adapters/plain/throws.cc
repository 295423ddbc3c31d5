#include <stdexcept>

#include "adapters/plain/builtin_table.h"

namespace attnguard {

const BuiltinEngine kBuiltinThrows = {
    .name = "throws",
    .summary = "known bad: throws an exception on every call",
    .make =
        [] {
          Engine engine;
          engine.run = [](const AttentionCall&) -> Status {
            throw std::runtime_error("this engine always throws");
          };
          return engine;
        },
};

}  // namespace attnguard
