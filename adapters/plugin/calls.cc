#include "adapters/plugin/calls.h"

#include <algorithm>

#include "adapters/plugin/attnguard_plugin.h"

namespace attnguard::plugin {
namespace {

constexpr char kGuardByte = 0x5a;

}  // namespace

MessageBuffer::MessageBuffer() {
  bytes_.fill(kGuardByte);
  std::fill_n(bytes_.begin(), kSize, '\0');
}

std::string MessageBuffer::text() const {
  const auto* end = std::find(bytes_.begin(), bytes_.begin() + kSize, '\0');
  std::string text(bytes_.begin(), end);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

bool MessageBuffer::overrun() const {
  return std::any_of(bytes_.begin() + kSize, bytes_.end(),
                     [](char byte) { return byte != kGuardByte; });
}

Status MessageBuffer::judge(std::string_view function, int returned) const {
  const std::string name = std::string(function) + "()";
  const std::string message = text();
  if (overrun())
    return {StatusCode::kEngineFailure,
            name + " wrote past the end of its message buffer of " +
                std::to_string(kSize) + " bytes; heed message_size"};
  const std::string says =
      message.empty() ? " and gave no message" : ": " + message;
  switch (returned) {
    case ATTNGUARD_OK:
      return ok_status();
    case ATTNGUARD_INVALID_ARGUMENT:
      return invalid_argument(name + " returned 'invalid argument'" + says);
    case ATTNGUARD_UNSUPPORTED:
      return unsupported(name + " returned 'unsupported'" + says);
    case ATTNGUARD_OUT_OF_MEMORY:
      return {StatusCode::kOutOfMemory,
              name + " returned 'out of memory'" + says};
    case ATTNGUARD_FAILED:
      return {StatusCode::kEngineFailure, name + " returned 'failed'" + says};
    default:
      return {StatusCode::kEngineFailure,
              name + " returned status " + std::to_string(returned) +
                  ", which plugin ABI version " +
                  std::to_string(ATTNGUARD_PLUGIN_ABI_VERSION) +
                  " does not have, see enum attnguard_status" +
                  (message.empty() ? "" : "; its message: " + message)};
  }
}

Status threw(std::string_view function, const std::string& what) {
  return {StatusCode::kEngineFailure,
          std::string(function) + "() threw an exception (" + what +
              "); catch it in the plugin and return ATTNGUARD_FAILED"};
}

Status engine_failure(const std::string& message) {
  return {StatusCode::kEngineFailure, message};
}

}  // namespace attnguard::plugin
