// What every fuzz target includes: the entry that libFuzzer and replay.cc call,
// and how a target says that something is wrong.
#ifndef ATTNGUARD_TESTS_FUZZ_TARGET_H_
#define ATTNGUARD_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

// Returns 0; whatever the bytes are, it may not crash.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

namespace attnguard::fuzz {

// Ends the process, which the fuzzer keeps the input of.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

// An input, taken piece by piece; behind its end it holds zeros.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size)
      : data_(data), size_(size) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value = {};
    const std::size_t have = size_ < sizeof value ? size_ : sizeof value;
    if (have > 0) std::memcpy(&value, data_, have);
    data_ += have;
    size_ -= have;
    return value;
  }

  // One of 0 .. below - 1.
  std::size_t below(std::size_t below) { return take<std::uint8_t>() % below; }
  bool flag() { return (take<std::uint8_t>() & 1) != 0; }

  std::string text(std::size_t most) {
    const std::size_t length = size_ < most ? size_ : most;
    std::string text(reinterpret_cast<const char*>(data_), length);
    data_ += length;
    size_ -= length;
    return text;
  }

  bool empty() const { return size_ == 0; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace attnguard::fuzz

#endif  // ATTNGUARD_TESTS_FUZZ_TARGET_H_
