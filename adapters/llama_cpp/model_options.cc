#include "adapters/llama_cpp/model_options.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "guard/base/text.h"

namespace attnguard::llama {
namespace {

Status bad_value(const std::string& name, const std::string& value,
                 const std::string& expected) {
  return invalid_argument("option " + name + ": '" + value + "' is not " +
                          expected);
}

Status read(const std::string& name, const std::string& value,
            std::int64_t lowest, std::int64_t highest, std::int64_t& to) {
  const std::optional<std::int64_t> number = parse_int(value);
  if (!number || *number < lowest || *number > highest)
    return bad_value(name, value,
                     "a whole number from " + std::to_string(lowest) + " to " +
                         std::to_string(highest));
  to = *number;
  return ok_status();
}

Status read(const std::string& name, const std::string& value, bool& to) {
  if (value != "0" && value != "1") return bad_value(name, value, "0 or 1");
  to = value == "1";
  return ok_status();
}

Status read(const std::string& name, const std::string& value,
            const std::vector<std::string_view>& known, std::string& to) {
  if (std::ranges::find(known, value) == known.end())
    return invalid_argument("option " + name + ": unknown '" + value + "'" +
                            suggestion(value, known));
  to = value;
  return ok_status();
}

Status read_one(const std::string& name, const std::string& value,
                Options& to) {
  if (name == "flash")
    return read(name, value, {"auto", "off", "on"}, to.flash);
  if (name == "kv")
    return read(name, value, {"bf16", "f16", "f32", "q8_0"}, to.kv);
  if (name == "context") return read(name, value, 4, 1 << 20, to.context);
  if (name == "sequences") return read(name, value, 1, 64, to.sequences);
  if (name == "ubatch") return read(name, value, 1, 1 << 20, to.ubatch);
  if (name == "unified") return read(name, value, to.unified);
  if (name == "swa_full") return read(name, value, to.swa_full);
  if (name == "causal") return read(name, value, to.causal);
  if (name == "threads") return read(name, value, 1, 1024, to.threads);
  if (name == "gpu_layers") return read(name, value, 0, 10000, to.gpu_layers);
  if (name == "path") {
    to.path = value;
    return ok_status();
  }
  constexpr std::string_view kKnown[] = {
      "causal",    "context",  "flash",   "gpu_layers", "kv",     "path",
      "sequences", "swa_full", "threads", "ubatch",     "unified"};
  return invalid_argument("unknown option '" + name + "' of a .gguf model" +
                          suggestion(name, kKnown));
}

}  // namespace

Result<Options> read_options(const std::map<std::string, std::string>& given) {
  Options options;
  for (const auto& [name, value] : given) {
    Status status = read_one(name, value, options);
    if (!status.ok()) return status;
  }
  return options;
}

}  // namespace attnguard::llama
