// A dump of the live guard: a file that is taken has only tensors that lie in
// it, and can be judged again.
#include "guard/runtime/dump_file.h"

#include <chrono>
#include <utility>
#include <vector>

#include "guard/runtime/replay.h"
#include "tests/fuzz/target.h"

using namespace attnguard;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  Result<Safetensors> file =
      Safetensors::parse(std::vector<std::byte>(bytes, bytes + size), "dump");
  if (!file.ok()) {
    require(!file.status().message().empty(), "an error without a message");
    return 0;
  }
  // Every byte that a tensor claims is the file's, and no other's.
  std::vector<std::byte> claimed;
  for (const StoredTensor& tensor : file.value().tensors())
    claimed.insert(claimed.end(), tensor.data.begin(), tensor.data.end());
  require(claimed.size() <= size, "tensors share bytes");

  const Result<Dump> dump = Dump::from(std::move(file.value()), "dump");
  if (!dump.ok()) {
    require(!dump.status().message().empty(), "an error without a message");
    return 0;
  }
  const Rejudged judged = judge_call(
      judged_call(dump.value()), dump.value().record().findings,
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200));
  require(judged.rows <= judged.of_rows, "more rows judged than there are");
  return 0;
}
