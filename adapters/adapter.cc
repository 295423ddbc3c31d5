#include "adapters/adapter.h"

#include "guard/base/text.h"

namespace attnguard {
namespace {

Status malformed(std::string_view text, const std::string& problem) {
  return invalid_argument("engine '" + std::string(text) + "': " + problem +
                          "; write adapter:engine or "
                          "adapter:engine,option=value, e.g. builtin:tiled");
}

}  // namespace

Result<EngineSpec> parse_engine_spec(std::string_view text,
                                     std::string& adapter) {
  const std::vector<std::string_view> pieces = split(text, ',');
  const std::string_view name = pieces[0];
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos)
    return malformed(text, "there is no adapter before the engine's name");
  adapter = trim(name.substr(0, colon));
  EngineSpec spec;
  spec.full = trim(text);
  spec.engine = trim(name.substr(colon + 1));
  if (adapter.empty()) return malformed(text, "the adapter's name is empty");
  if (spec.engine.empty()) return malformed(text, "the engine's name is empty");
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::string piece{pieces[i]};
    const std::size_t equals = piece.find('=');
    const std::string option{trim(pieces[i].substr(0, equals))};
    if (equals == std::string_view::npos || option.empty())
      return malformed(text, "'" + piece + "' is not of the form option=value");
    const std::string value{trim(pieces[i].substr(equals + 1))};
    if (!spec.options.emplace(option, value).second)
      return malformed(text, "option '" + option + "' is given twice");
  }
  return spec;
}

}  // namespace attnguard
