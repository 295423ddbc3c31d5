// Bytes between the two processes: values into frames and back, and frames
// over a stream socket. What arrives may be garbage, as an engine can write to
// any descriptor: it is refused, and nothing here waits longer than it is told.
#ifndef ATTNGUARD_CI_ISOLATE_WIRE_H_
#define ATTNGUARD_CI_ISOLATE_WIRE_H_

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace attnguard {

// Appends values: archive(a, b, c). A message type T says what it is made of
// with `fields(archive, t)`, which serves both directions.
class Encoder {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void put_word(std::int64_t word) {
    char raw[8];
    std::memcpy(raw, &word, 8);
    bytes_.append(raw, 8);
  }
  void put(const std::string& text) {
    put_word(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  void put(double value) { put_word(std::bit_cast<std::int64_t>(value)); }
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
      put_word(static_cast<std::int64_t>(value));
    else
      fields(*this, const_cast<T&>(value));
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put_word(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  template <typename T, std::size_t kCount>
  void put(const std::array<T, kCount>& values) {
    for (const T& value : values) put(value);
  }

  std::string bytes_;
};

// Takes the values out again. After more than there is, all is zero and
// finished() is false.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

  // All bytes were used and none was missing.
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  std::int64_t get_word() {
    std::int64_t word = 0;
    if (failed_ || rest_.size() < 8) {
      failed_ = true;
      return 0;
    }
    std::memcpy(&word, rest_.data(), 8);
    rest_.remove_prefix(8);
    return word;
  }
  // A number of things of at least one byte each.
  std::size_t get_count() {
    const std::int64_t count = get_word();
    if (count >= 0 && static_cast<std::size_t>(count) <= rest_.size())
      return static_cast<std::size_t>(count);
    failed_ = true;
    return 0;
  }
  void get(std::string& text) {
    const std::size_t count = get_count();
    text = rest_.substr(0, count);
    rest_.remove_prefix(count);
  }
  void get(double& value) { value = std::bit_cast<double>(get_word()); }
  template <typename T>
  void get(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
      value = static_cast<T>(get_word());
    else
      fields(*this, value);
  }
  template <typename T>
  void get(std::vector<T>& values) {
    values.resize(get_count());
    for (T& value : values) get(value);
  }
  template <typename T, std::size_t kCount>
  void get(std::array<T, kCount>& values) {
    for (T& value : values) get(value);
  }

  std::string_view rest_;
  bool failed_ = false;
};

using Deadline = std::chrono::steady_clock::time_point;

enum class Transfer {
  kDone,
  kClosed,   // The other side has gone, or has closed its end.
  kTimeout,  // The deadline passed.
  kGarbage,  // What came is no frame.
};

// Asked every tenth of a second while nothing comes; false gives up as if the
// other side had closed its end.
using StillThere = std::function<bool()>;

Transfer send_frame(int socket, std::string_view payload, Deadline deadline);
Transfer receive_frame(int socket, std::string& payload, Deadline deadline,
                       const StillThere& still_there);

// The worker waits as long as it takes.
inline constexpr Deadline kForever = Deadline::max();

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_WIRE_H_
