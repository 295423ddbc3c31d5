#include "guard/runtime/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// A file of this header and so many bytes of data.
std::vector<std::byte> file_with(std::string header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return bytes_of(file + header + std::string(data, 'x'));
}

std::string header_error(const std::string& header, std::size_t data) {
  const auto parsed = Safetensors::parse(file_with(header, data), "some.file");
  if (parsed.ok()) return "no error";
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(parsed.status().message(), HasSubstr("some.file: "));
  return parsed.status().message();
}

struct Sample {
  std::vector<double> wide = {1.5, -2, 0.25, 8, 1e300, -0.0};
  std::vector<std::uint16_t> narrow = {1, 2, 3};
  SafetensorsMetadata metadata = {
      {"engine", "mine \"x\"\n"}, {"empty", ""}, {"unicode", "\xc3\xa4"}};

  std::vector<std::byte> file() const {
    const std::vector<StoredTensor> tensors = {
        {"wide",
         find_stored_type("F64"),
         {2, 3},
         std::as_bytes(std::span(wide))},
        {"none", find_stored_type("F32"), {0, 4}, {}},
        {"narrow",
         find_stored_type("BF16"),
         {3},
         std::as_bytes(std::span(narrow))}};
    const Result<std::string> header = safetensors_header(tensors, metadata);
    EXPECT_TRUE(header.ok()) << header.status().message();
    std::vector<std::byte> file = bytes_of(header.value());
    for (const StoredTensor& tensor : tensors)
      file.insert(file.end(), tensor.data.begin(), tensor.data.end());
    return file;
  }
};

TEST(Safetensors, ReadsWhatItWrote) {
  const Sample sample;
  const auto parsed = Safetensors::parse(sample.file(), "x");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().metadata(), sample.metadata);
  ASSERT_EQ(parsed.value().tensors().size(), 3u);
  const StoredTensor* wide = parsed.value().find("wide");
  ASSERT_NE(wide, nullptr);
  EXPECT_EQ(wide->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(wide->type->dtype, Dtype::kFp64);
  EXPECT_EQ(std::memcmp(wide->data.data(), sample.wide.data(), 48), 0);
  EXPECT_TRUE(parsed.value().find("none")->data.empty());
  EXPECT_EQ(parsed.value().find("narrow")->data.size(), 6u);
  EXPECT_EQ(parsed.value().find("wid"), nullptr);
  EXPECT_EQ(parsed.value().text("nothing"), "");
}

TEST(Safetensors, StaysGoodWhenItIsMoved) {
  auto parsed = Safetensors::parse(Sample().file(), "x");
  ASSERT_TRUE(parsed.ok());
  const Safetensors moved = std::move(parsed.value());
  double first = 0;
  std::memcpy(&first, moved.find("wide")->data.data(), 8);
  EXPECT_EQ(first, 1.5);
}

TEST(Safetensors, AlignsTheDataForAnyReader) {
  const std::vector<std::byte> file = Sample().file();
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(static_cast<char>(file[8]), '{');
}

TEST(Safetensors, HasATypeForEveryDtype) {
  for (const DtypeInfo& info : all_dtypes()) {
    EXPECT_EQ(stored_type(info.dtype).dtype, info.dtype) << info.name;
    EXPECT_EQ(stored_type(info.dtype).size, info.size) << info.name;
  }
  EXPECT_EQ(find_stored_type("F31"), nullptr);
}

TEST(Safetensors, DoesNotWriteWhatItWouldNotRead) {
  const std::vector<float> data(3);
  const auto bytes = std::as_bytes(std::span(data));
  const StoredType* type = find_stored_type("F32");
  const auto error = [](const std::vector<StoredTensor>& tensors) {
    const Result<std::string> header = safetensors_header(tensors, {});
    return header.ok() ? "no error" : header.status().message();
  };
  EXPECT_EQ(error({{"a", type, {3}, bytes}}), "no error");
  EXPECT_THAT(error({{"a", type, {4}, bytes}}), HasSubstr("has 12 bytes"));
  EXPECT_THAT(error({{"a", type, {3}, bytes}, {"a", type, {3}, bytes}}),
              HasSubstr("'a' is taken"));
  EXPECT_THAT(error({{"__metadata__", type, {3}, bytes}}),
              HasSubstr("is taken"));
}

// header, bytes of data, what the message says
struct Malformed {
  const char* header;
  std::size_t data;
  const char* message;
};

TEST(Safetensors, SaysWhatIsWrongWithAFile) {
  const Malformed kFiles[] = {
      {"", 0, "does not begin with '{'"},
      {"[]", 0, "does not begin with '{'"},
      {"{", 0, "no JSON"},
      {R"({"a":1})", 0, "its entry is no JSON object"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8,
       "there are 8 bytes of data"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
       "lie past the end: there are 4 bytes of data"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8,
       "take 4 bytes, its offsets span 8"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4,
       R"(unknown dtype "F33"; did you mean 'F32'?)"},
      {R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4,
       "dtype is missing or no text"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
       "a length must be a whole number, got -1"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4,
       "a length must be a whole number"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],)"
       R"("data_offsets":[0,4]}})",
       4, "a length must be a whole number"},
      {R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],)"
       R"("data_offsets":[0,0]}})",
       0, "more elements than any memory"},
      {R"({"a":{"dtype":"F64","shape":[2305843009213693952],)"
       R"("data_offsets":[0,0]}})",
       0, "more elements than any memory"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
       "end before they begin"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
       "data_offsets is missing or no list of two"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"b":1}})", 4,
       R"(unknown key "b")"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "they overlap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12, "there is a gap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, R"(the key "a" is given twice)"},
      {R"({"__metadata__":{"a":1}})", 0, R"("a" is no text but 1)"},
      {R"({"__metadata__":[]})", 0, "__metadata__ is no JSON object"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "is given twice"},
      {R"({"a":{"dtype":[[[]]]}})", 0, "nested deeper"},
      {"{\"a\xff\":1}", 0, "no JSON"},
  };
  for (const Malformed& file : kFiles)
    EXPECT_THAT(header_error(file.header, file.data), HasSubstr(file.message))
        << file.header;
}

TEST(Safetensors, DoesNotBelieveAHeadersLength) {
  for (std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 20, std::uint64_t{100'000'001},
        std::numeric_limits<std::uint64_t>::max()}) {
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    const auto parsed = Safetensors::parse(bytes_of(file + "{}"), "x");
    ASSERT_FALSE(parsed.ok()) << length;
    EXPECT_THAT(parsed.status().message(),
                HasSubstr(std::to_string(length) + " bytes long"));
  }
  for (const char* text : {"", "1234567"})
    EXPECT_FALSE(Safetensors::parse(bytes_of(text), "x").ok());
}

TEST(Safetensors, ADeepHeaderIsRefusedEarly) {
  std::string header = "{\"a\":";
  header.append(1'000'000, '[');
  EXPECT_THAT(header_error(header, 0), HasSubstr("nested deeper"));
}

TEST(Safetensors, SaysWhyAFileCannotBeRead) {
  const auto missing = Safetensors::load("/nowhere/x.safetensors");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(),
              HasSubstr("/nowhere/x.safetensors: cannot open it: No such"));
  const auto folder = Safetensors::load("/");
  EXPECT_EQ(folder.status().code(), StatusCode::kIo);
  const std::string path = testing::TempDir() + "large.safetensors";
  std::ofstream(path) << std::string(70000, 'x');
  const auto large = Safetensors::load(path, 100);
  EXPECT_THAT(large.status().message(), HasSubstr("larger than 100 bytes"));
  std::filesystem::remove(path);
}

// Every cut and 20000 seeded changes of a good file: an error or a file whose
// tensors lie within it, never more.
TEST(Safetensors, EndsInAnErrorWhateverTheBytesAre) {
  const std::vector<std::byte> good = Sample().file();
  const auto look = [](std::vector<std::byte> bytes) {
    const std::size_t size = bytes.size();
    const auto parsed = Safetensors::parse(std::move(bytes), "x");
    if (!parsed.ok()) return false;
    std::size_t total = 0;
    unsigned sum = 0;
    for (const StoredTensor& tensor : parsed.value().tensors()) {
      total += tensor.data.size();
      for (std::byte b : tensor.data) sum += std::to_integer<unsigned>(b);
    }
    EXPECT_LE(total, size);
    EXPECT_LT(sum, 256 * size + 1);
    return true;
  };
  EXPECT_TRUE(look(good));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(look({good.begin(), good.begin() + size})) << size;
  constexpr std::uint64_t kSeed = 20260131;
  int accepted = 0;
  for (std::uint64_t round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = good;
    std::uint64_t bits = derive_seed(kSeed, round);
    for (std::uint64_t n = bits % 4 + 1; n > 0; --n) {
      bits = mix_bits(bits);
      const auto at = static_cast<std::size_t>(
          uniform_below(bits, static_cast<std::int64_t>(bytes.size())));
      if ((bits & 7) == 0)
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
      else if ((bits & 7) == 1)
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     std::byte{'9'});
      else
        bytes[at] = std::byte{static_cast<unsigned char>(bits >> 8)};
    }
    accepted += look(std::move(bytes));
  }
  // Changes of the data alone leave a good file.
  EXPECT_GT(accepted, 100) << "seed " << kSeed;
  EXPECT_LT(accepted, 19000) << "seed " << kSeed;
}

}  // namespace
}  // namespace attnguard
