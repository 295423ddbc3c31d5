#include "guard/runtime/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "guard/base/text.h"

namespace attnguard {
namespace {

using HeaderJson = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kDataAlignment = 8;
constexpr std::size_t kMostAxes = 16;
constexpr std::size_t kDeepestHeader = 3;  // {"name": {"shape": [1]}}

static_assert(std::endian::native == std::endian::little,
              "tensors are copied as they lie in memory");

// Elements of the shape; nullopt when a 64-bit number cannot hold them.
std::optional<std::uint64_t> count_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (std::int64_t length : shape) {
    if (length < 0) return std::nullopt;
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(length),
                               &count))
      return std::nullopt;
  }
  return count;
}

std::optional<std::uint64_t> bytes_of(const StoredTensor& tensor) {
  const auto count = count_of(tensor.shape);
  std::uint64_t bytes = 0;
  if (!count ||
      __builtin_mul_overflow(*count, std::uint64_t{tensor.type->size}, &bytes))
    return std::nullopt;
  return bytes;
}

std::string number_text(const HeaderJson& value) {
  std::string text =
      value.dump(-1, ' ', true, HeaderJson::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

// A name as a message may show it: it comes from the file.
std::string shown(std::string_view name) {
  return number_text(HeaderJson(std::string(name)));
}

// The parser alone keeps the last of two equal keys and any nesting; tools
// disagree about such files, so they are refused.
class StrictParse {
 public:
  Result<HeaderJson> parse(std::string_view text) {
    try {
      return HeaderJson::parse(
          text,
          [this](int, HeaderJson::parse_event_t event, HeaderJson& parsed) {
            note(event, parsed);
            return true;
          });
    } catch (const Refused& refused) {
      return invalid_argument(refused.reason);
    } catch (const HeaderJson::exception& error) {
      return invalid_argument("no JSON: " + std::string(error.what()));
    }
  }

 private:
  struct Refused {
    std::string reason;
  };

  void note(HeaderJson::parse_event_t event, const HeaderJson& parsed) {
    using Event = HeaderJson::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (keys_.size() == kDeepestHeader)
        throw Refused{"nested deeper than any safetensors header"};
      keys_.emplace_back();
    }
    if (event == Event::object_end || event == Event::array_end)
      keys_.pop_back();
    if (event == Event::key &&
        !keys_.back().insert(parsed.get<std::string>()).second)
      throw Refused{"ambiguous: the key " + shown(parsed.get<std::string>()) +
                    " is given twice"};
  }

  std::vector<std::set<std::string>> keys_;  // of the open objects and lists
};

// Where a tensor's bytes lie, counted from the end of the header.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> data) : data_(data) {}

  Status read(const HeaderJson& header) {
    if (!header.is_object())
      return invalid_argument("the header is no JSON object");
    for (const auto& [name, value] : header.items()) {
      const Status status = name == kMetadataKey ? read_metadata(value)
                                                 : read_tensor(name, value);
      if (!status.ok()) return status;
    }
    return place();
  }

  SafetensorsMetadata metadata;
  std::vector<StoredTensor> tensors;

 private:
  Status read_metadata(const HeaderJson& value) {
    if (!value.is_object())
      return invalid_argument("__metadata__ is no JSON object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string())
        return invalid_argument("__metadata__: " + shown(key) +
                                " is no text but " + number_text(text));
      metadata[key] = text.get<std::string>();
    }
    return ok_status();
  }

  Status read_tensor(const std::string& name, const HeaderJson& value) {
    const std::string who = "tensor " + shown(name) + ": ";
    if (!value.is_object())
      return invalid_argument(who + "its entry is no JSON object");
    for (const auto& [key, unused] : value.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        return invalid_argument(who + "unknown key " + shown(key) +
                                "; known: dtype, shape, data_offsets");
    StoredTensor tensor{.name = name};
    Extent extent;
    for (const Status& status :
         {read_type(value, tensor), read_shape(value, tensor),
          read_offsets(value, extent)})
      if (!status.ok()) return invalid_argument(who + status.message());
    const auto bytes = bytes_of(tensor);
    if (!bytes)
      return invalid_argument(who + "the shape has more elements than any " +
                              "memory holds");
    if (*bytes != extent.end - extent.begin)
      return invalid_argument(who + "its shape and dtype take " +
                              std::to_string(*bytes) +
                              " bytes, its offsets span " +
                              std::to_string(extent.end - extent.begin));
    tensors.push_back(std::move(tensor));
    extents_.push_back(extent);
    return ok_status();
  }

  static Status read_type(const HeaderJson& value, StoredTensor& tensor) {
    const auto found = value.find("dtype");
    if (found == value.end() || !found->is_string())
      return invalid_argument("dtype is missing or no text");
    const auto name = found->get<std::string>();
    tensor.type = find_stored_type(name);
    if (tensor.type != nullptr) return ok_status();
    std::vector<std::string_view> known;
    for (const StoredType& type : all_stored_types())
      known.push_back(type.name);
    return invalid_argument(
        "unknown dtype " + shown(name) +
        suggestion(std::string_view(name).substr(0, 20), known));
  }

  static Status read_shape(const HeaderJson& value, StoredTensor& tensor) {
    const auto found = value.find("shape");
    if (found == value.end() || !found->is_array())
      return invalid_argument("shape is missing or no list");
    if (found->size() > kMostAxes)
      return invalid_argument("shape has " + std::to_string(found->size()) +
                              " axes; at most " + std::to_string(kMostAxes) +
                              " are read");
    for (const HeaderJson& length : *found) {
      if (!length.is_number_unsigned() ||
          length.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
        return invalid_argument("shape: a length must be a whole number, got " +
                                number_text(length));
      tensor.shape.push_back(length.get<std::int64_t>());
    }
    return ok_status();
  }

  Status read_offsets(const HeaderJson& value, Extent& extent) const {
    const auto found = value.find("data_offsets");
    if (found == value.end() || !found->is_array() || found->size() != 2 ||
        !(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned())
      return invalid_argument("data_offsets is missing or no list of two " +
                              std::string("whole numbers"));
    extent = {(*found)[0].get<std::uint64_t>(),
              (*found)[1].get<std::uint64_t>()};
    if (extent.begin > extent.end)
      return invalid_argument("data_offsets end before they begin: " +
                              number_text(*found));
    if (extent.end > data_.size())
      return invalid_argument("data_offsets " + number_text(*found) +
                              " lie past the end: there "
                              "are " +
                              std::to_string(data_.size()) +
                              " bytes of data; the file may be cut off");
    return ok_status();
  }

  // Sorts by place; neither gaps nor overlaps are allowed, so that every byte
  // of the file has one meaning.
  Status place() {
    std::vector<std::size_t> order(tensors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) {
                       return std::pair(extents_[a].begin, extents_[a].end) <
                              std::pair(extents_[b].begin, extents_[b].end);
                     });
    std::vector<StoredTensor> sorted;
    std::uint64_t at = 0;
    for (std::size_t i : order) {
      const Extent& extent = extents_[i];
      if (extent.begin != at)
        return invalid_argument(
            "tensor " + shown(tensors[i].name) + ": its data begin at byte " +
            std::to_string(extent.begin) + ", but those before it end at " +
            std::to_string(at) +
            (extent.begin < at ? ": they overlap" : ": there is a gap"));
      at = extent.end;
      tensors[i].data = data_.subspan(extent.begin, extent.end - extent.begin);
      sorted.push_back(std::move(tensors[i]));
    }
    if (at != data_.size())
      return invalid_argument("the last tensor ends at byte " +
                              std::to_string(at) + ", but there are " +
                              std::to_string(data_.size()) + " bytes of data");
    tensors = std::move(sorted);
    return ok_status();
  }

  std::span<const std::byte> data_;
  std::vector<Extent> extents_;  // of tensors[i], until place()
};

Status read_header(std::span<const std::byte> bytes, SafetensorsMetadata& meta,
                   std::vector<StoredTensor>& tensors) {
  if (bytes.size() < kLengthBytes)
    return invalid_argument("the file has " + std::to_string(bytes.size()) +
                            " bytes; a safetensors file has 8 at least");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const std::uint64_t rest = bytes.size() - kLengthBytes;
  if (length > kLargestSafetensorsHeader)
    return invalid_argument(
        "the header would be " + std::to_string(length) +
        " bytes long, more than the format allows (100000000); this is no "
        "safetensors file");
  if (length > rest)
    return invalid_argument("the header would be " + std::to_string(length) +
                            " bytes long, but only " + std::to_string(rest) +
                            " follow; the file is cut off, or is none");
  const std::string_view text(
      reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!text.starts_with('{'))
    return invalid_argument("the header does not begin with '{'");
  const Result<HeaderJson> header = StrictParse().parse(text);
  if (!header.ok())
    return invalid_argument("the header is " + header.status().message());
  HeaderReader reader(bytes.subspan(kLengthBytes + length));
  if (Status status = reader.read(header.value()); !status.ok()) return status;
  meta = std::move(reader.metadata);
  tensors = std::move(reader.tensors);
  return ok_status();
}

struct TensorFileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status io_failure(const std::string& path, std::string_view doing) {
  const int error = errno;
  return {error == ENOENT ? StatusCode::kNotFound : StatusCode::kIo,
          path + ": cannot " + std::string(doing) + ": " +
              std::generic_category().message(error)};
}

}  // namespace

std::span<const StoredType> all_stored_types() {
  static constexpr std::array<StoredType, 15> kTypes = {{
      {"F64", 8, Dtype::kFp64},
      {"F32", 4, Dtype::kFp32},
      {"F16", 2, Dtype::kFp16},
      {"BF16", 2, Dtype::kBf16},
      {"F8_E4M3", 1, {}},
      {"F8_E5M2", 1, {}},
      {"I64", 8, {}},
      {"I32", 4, {}},
      {"I16", 2, {}},
      {"I8", 1, {}},
      {"U64", 8, {}},
      {"U32", 4, {}},
      {"U16", 2, {}},
      {"U8", 1, {}},
      {"BOOL", 1, {}},
  }};
  return kTypes;
}

const StoredType* find_stored_type(std::string_view name) {
  for (const StoredType& type : all_stored_types())
    if (type.name == name) return &type;
  return nullptr;
}

const StoredType& stored_type(Dtype dtype) {
  for (const StoredType& type : all_stored_types())
    if (type.dtype == dtype) return type;
  return all_stored_types().front();  // Every dtype has one: a test says so.
}

Result<std::string> safetensors_header(std::span<const StoredTensor> tensors,
                                       const SafetensorsMetadata& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) {
    OrderedJson texts = OrderedJson::object();
    for (const auto& [key, text] : metadata) texts[key] = text;
    header[std::string(kMetadataKey)] = std::move(texts);
  }
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == kMetadataKey || header.contains(tensor.name))
      return invalid_argument("the tensor name '" + tensor.name + "' is taken");
    const auto bytes = bytes_of(tensor);
    if (bytes != tensor.data.size())
      return invalid_argument("tensor '" + tensor.name + "' has " +
                              std::to_string(tensor.data.size()) +
                              " bytes, not those of its shape and dtype");
    header[tensor.name] = {{"dtype", tensor.type->name},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + *bytes}}};
    at += *bytes;
  }
  std::string text =
      header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize(
      (text.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment,
      ' ');
  if (text.size() > kLargestSafetensorsHeader)
    return invalid_argument("the header is larger than the format allows");
  const std::uint64_t length = text.size();
  std::string out(kLengthBytes, '\0');
  std::memcpy(out.data(), &length, kLengthBytes);
  return out + text;
}

Result<Safetensors> Safetensors::parse(std::vector<std::byte> bytes,
                                       std::string_view name) {
  Safetensors file;
  file.bytes_ = std::move(bytes);
  // Moving the file moves no byte, so the tensors' spans stay good.
  const Status status = read_header(file.bytes_, file.metadata_, file.tensors_);
  if (!status.ok())
    return Status(status.code(), std::string(name) + ": " + status.message());
  return file;
}

Result<Safetensors> Safetensors::load(const std::string& path,
                                      std::uint64_t most) {
  const std::unique_ptr<std::FILE, TensorFileCloser> file(
      std::fopen(path.c_str(), "rb"));
  if (!file) return io_failure(path, "open it");
  // Grows with what is read: what is no regular file has no size to ask for.
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  for (;;) {
    if (used == bytes.size()) {
      if (used > most)
        return invalid_argument(path + ": larger than " + std::to_string(most) +
                                " bytes");
      bytes.resize(std::max<std::size_t>(std::size_t{1} << 16, used * 2));
    }
    const std::size_t got =
        std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += got;
    if (got == 0) break;
  }
  if (std::ferror(file.get())) return io_failure(path, "read it");
  bytes.resize(used);
  return parse(std::move(bytes), path);
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  for (const StoredTensor& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

std::string_view Safetensors::text(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  return found == metadata_.end() ? std::string_view() : found->second;
}

}  // namespace attnguard
