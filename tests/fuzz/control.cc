// The control of the fuzzer: a target that does crash, at a word that only a
// fuzzer that watches the code comes upon. ci/fuzz.sh requires that it does.
#include <string_view>

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  int right = 0;
  for (const char expected : std::string_view("row")) {
    if (text.size() <= static_cast<std::size_t>(right)) break;
    if (text[static_cast<std::size_t>(right)] != expected) break;
    ++right;
    // Branches of their own, so that each letter is a step forward.
    if (right == 1) static_cast<void>(text.find('o'));
    if (right == 2) static_cast<void>(text.find('w'));
  }
  attnguard::fuzz::require(right < 3, "the planted fault");
  return 0;
}
