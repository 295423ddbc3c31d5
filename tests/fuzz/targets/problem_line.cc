// A problem line: it ends in a problem or in an error that says why, and a
// problem's own text is read back as the same problem.
#include <string_view>

#include "guard/problem/problem.h"
#include "tests/fuzz/target.h"

using namespace attnguard;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Problem> problem = Problem::parse(text);
  if (!problem.ok()) {
    require(!problem.status().message().empty(), "an error without a message");
    return 0;
  }
  const std::string line = problem.value().text();
  const Result<Problem> again = Problem::parse(line);
  require(again.ok(), "a problem's own text is refused");
  require(again.value().text() == line, "a problem reads as another");
  return 0;
}
