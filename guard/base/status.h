// How a call reports failure. The library never throws across its API, never
// prints and never exits: it returns one of these.
#ifndef ATTNGUARD_GUARD_BASE_STATUS_H_
#define ATTNGUARD_GUARD_BASE_STATUS_H_

#include <optional>
#include <string>
#include <utility>

namespace attnguard {

// The meaning stands on the code's own line; new codes are appended.
enum class StatusCode {
  kOk,               // It worked.
  kInvalidArgument,  // The caller's input is wrong; the message says how.
  kUnsupported,      // Correct input that this engine or build cannot do.
  kNotFound,         // A file, library, symbol or name does not exist.
  kIo,               // Reading or writing a file failed.
  kEngineFailure,    // The engine threw, crashed or returned an error.
  kOutOfMemory,      // An allocation failed.
};

// A code and, when it is not kOk, a message of one or more lines that says
// what went wrong and what to do about it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status ok_status() { return {}; }

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}

inline Status unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}

// A value or the reason there is none. value() requires ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_STATUS_H_
