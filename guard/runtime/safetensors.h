// The safetensors format: a file of named tensors that Python, Rust and C++
// tools read without running anything.
//
//   8 bytes   length N of the header, little-endian
//   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3],
//                             "data_offsets": [begin, end]}, ...,
//                    "__metadata__": {"key": "text", ...}}
//   the rest  the tensors' bytes, little-endian, row-major, without gaps;
//             offsets count from here
//
// The reader takes files from anywhere: whatever is wrong ends in a status
// that names it, never in a crash, and no length is believed before it was
// compared with the file's.
#ifndef ATTNGUARD_GUARD_RUNTIME_SAFETENSORS_H_
#define ATTNGUARD_GUARD_RUNTIME_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/dtype.h"
#include "guard/base/status.h"

namespace attnguard {

// Element types of the format.
struct StoredType {
  std::string_view name;       // "F32", as in the header.
  std::size_t size;            // Bytes of one element.
  std::optional<Dtype> dtype;  // What the guard computes with; absent: nothing.
};

std::span<const StoredType> all_stored_types();

// nullptr when there is no such type.
const StoredType* find_stored_type(std::string_view name);
const StoredType& stored_type(Dtype dtype);

// A longer header is refused, as by the format's own reader.
inline constexpr std::uint64_t kLargestSafetensorsHeader = 100'000'000;

using SafetensorsMetadata = std::map<std::string, std::string>;

// One tensor of a file. `data` belongs to somebody else.
struct StoredTensor {
  std::string name;
  const StoredType* type = nullptr;
  std::vector<std::int64_t> shape;  // Empty: one element.
  std::span<const std::byte> data;  // Row-major, no gaps.
};

// The length and the header of a file of these tensors: what precedes their
// bytes, a multiple of 8 bytes long. Tensors lie in the given order; put wide
// elements first, so that each is aligned. Texts that are not UTF-8 get U+FFFD
// where they are not. kInvalidArgument: a name twice or a wrong size.
Result<std::string> safetensors_header(std::span<const StoredTensor> tensors,
                                       const SafetensorsMetadata& metadata);

// A file in memory.
class Safetensors {
 public:
  // Takes the file's bytes; `name` is what messages call it. kInvalidArgument:
  // it is no such file, and the message says why.
  static Result<Safetensors> parse(std::vector<std::byte> bytes,
                                   std::string_view name);

  // Reads the file first. kNotFound, kIo, or kInvalidArgument for one that is
  // larger than `most` bytes.
  static Result<Safetensors> load(const std::string& path,
                                  std::uint64_t most = std::uint64_t{1} << 36);

  const SafetensorsMetadata& metadata() const { return metadata_; }

  // In the order of the data.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  // nullptr when the file has no tensor of that name.
  const StoredTensor* find(std::string_view name) const;

  // The metadata's text, or empty.
  std::string_view text(std::string_view key) const;

 private:
  std::vector<std::byte> bytes_;
  SafetensorsMetadata metadata_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_SAFETENSORS_H_
