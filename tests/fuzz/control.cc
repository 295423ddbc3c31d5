// The control of the fuzzer: a target that does crash, at a word that only a
// fuzzer that watches the code comes upon. ci/fuzz.sh requires that it does.
#include <string_view>

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.size() < 3) return 0;
  // Branches of their own, so that each letter is a step forward.
  if (text[0] == 'r')
    if (text[1] == 'o')
      attnguard::fuzz::require(text[2] != 'w', "the planted fault");
  return 0;
}
