// One call of a plugin's function: its status and message become a Status, and
// whatever else it may do wrong on the way is caught.
#ifndef ATTNGUARD_ADAPTERS_PLUGIN_CALLS_H_
#define ATTNGUARD_ADAPTERS_PLUGIN_CALLS_H_

#include <array>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "guard/base/status.h"

namespace attnguard::plugin {

// What a plugin writes its message into, with bytes behind that it must leave
// alone.
class MessageBuffer {
 public:
  static constexpr std::size_t kSize = 1024;

  MessageBuffer();
  char* data() { return bytes_.data(); }

  // What `function` returned, as a Status. kEngineFailure for a status that
  // the interface does not have, and for a message longer than the buffer.
  Status judge(std::string_view function, int returned) const;

 private:
  static constexpr std::size_t kGuard = 64;
  std::string text() const;
  bool overrun() const;

  std::array<char, kSize + kGuard> bytes_;
};

Status threw(std::string_view function, const std::string& what);

// kEngineFailure, with what the plugin did wrong.
Status engine_failure(const std::string& message);

// call(message, message_size) calls the plugin's `function`.
template <typename Call>
Status call_plugin(std::string_view function, Call call) {
  MessageBuffer message;
  try {
    const int returned = call(message.data(), MessageBuffer::kSize);
    return message.judge(function, returned);
  } catch (const std::exception& error) {
    return threw(function, error.what());
  } catch (...) {
    return threw(function, "no std::exception");
  }
}

}  // namespace attnguard::plugin

#endif  // ATTNGUARD_ADAPTERS_PLUGIN_CALLS_H_
