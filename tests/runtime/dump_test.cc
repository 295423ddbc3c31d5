// From a call in memory to a file, and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "guard/runtime/dump_file.h"
#include "guard/runtime/dump_writer.h"
#include "tests/runtime/dump_folder.h"
#include "tests/runtime/live_tensors.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// The one file that a violation in this row leaves.
Result<Dump> dump_of(LiveTensors& tensors, std::int64_t b, std::int64_t head,
                     std::int64_t query, std::int64_t max_bytes = 1 << 20) {
  const DumpFolder folder;
  const TestViolation violation(tensors, b, head, query, kActionDump);
  DumpSettings settings = settings_of(folder);
  settings.max_bytes = max_bytes;
  DumpWriter writer(settings, "test engine", {});
  EXPECT_TRUE(writer.take(violation.violation));
  EXPECT_TRUE(writer.flush(kLong));
  const std::vector<std::string> files = folder.files();
  EXPECT_EQ(files.size(), 1u);
  if (files.empty()) return Status(StatusCode::kNotFound, "no file");
  EXPECT_EQ(writer.counters().bytes, fs::file_size(files[0]));
  return Dump::load(files[0]);
}

void expect_same_row(const ConstTensorView& a, const ConstTensorView& b,
                     std::int64_t batch, std::int64_t head,
                     std::int64_t position) {
  ASSERT_EQ(a.shape[3], b.shape[3]);
  for (std::int64_t c = 0; c < a.shape[3]; ++c)
    EXPECT_EQ(std::memcmp(a.at(batch, head, position, c),
                          b.at(batch, head, position, c), dtype_size(a.dtype)),
              0)
        << batch << ' ' << head << ' ' << position << ' ' << c;
}

// llama.cpp computes in fp32 over a cache of fp16: the file has what its own
// types say.
TEST(Dump, ACacheOfAnotherTypeIsConverted) {
  LiveTensors half("seq_len=4 head_dim=8 dtype=fp16");
  Problem problem = half.problem();
  problem.dtype = Dtype::kFp32;
  LiveTensors single(problem.text());
  AttentionCall call = single.call();
  call.key = half.call().key;
  const CapturedCall captured{&call, nullptr};
  const CaptureScope scope = whole_call(problem);
  std::vector<StoredTensor> tensors = capture_layout(captured, scope);
  std::vector<std::byte> bytes(capture_bytes(captured, scope));
  capture_tensors(captured, scope, tensors, bytes.data());
  const auto key = std::ranges::find(tensors, "key", &StoredTensor::name);
  ASSERT_NE(key, tensors.end());
  ASSERT_EQ(key->data.size(), 4u * 8u * sizeof(float));
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t c = 0; c < 8; ++c) {
      double expected = 0;
      half.call().key.load_row(0, 0, i, c, 1, &expected);
      float stored = 0;
      std::memcpy(&stored, key->data.data() + (i * 8 + c) * 4, 4);
      EXPECT_EQ(stored, static_cast<float>(expected)) << i << ' ' << c;
    }
}

// Every row of the scope is bit for bit what the call had.
void expect_same_tensors(LiveTensors& tensors, const Dump& dump) {
  const Problem& p = tensors.problem();
  const CaptureScope& scope = dump.record().scope;
  for (std::int64_t b = scope.batch.first; b < scope.batch.end(); ++b) {
    for (std::int64_t h = scope.heads.first; h < scope.heads.end(); ++h)
      for (std::int64_t i = scope.queries.first;
           i < std::min(scope.queries.end(), p.len_q(b)); ++i) {
        expect_same_row(dump.query(), tensors.view(TensorRole::kQuery), b, h,
                        i);
        expect_same_row(dump.output(), tensors.view(TensorRole::kOutput), b, h,
                        i);
      }
    for (std::int64_t g = scope.kv_heads.first; g < scope.kv_heads.end(); ++g)
      for (std::int64_t j = 0; j < p.len_kv(b); ++j) {
        expect_same_row(dump.key(), tensors.view(TensorRole::kKey), b, g, j);
        expect_same_row(dump.value(), tensors.view(TensorRole::kValue), b, g,
                        j);
      }
  }
}

TEST(Dump, HoldsTheTensorsOfEveryLayoutAndDtype) {
  for (const char* line :
       {"seq_len=9 head_dim=8 mask=causal_bottom_right",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=3,1,2 "
        "seq_len_kv=7,1,5 head_dim_qk=8 head_dim_v=6 dtype=fp16 "
        "mask=causal_bottom_right layout=bshd",
        "batch=2 num_heads=2 seq_len_q=3,4 seq_len_kv=5,9 head_dim=8 "
        "dtype=bf16 mask=full packed=true",
        "batch=2 num_heads=2 num_kv_heads=1 seq_len_q=1 seq_len_kv=9,20 "
        "head_dim=8 dtype=fp16 out_dtype=fp32 mask=full block_size=4",
        "seq_len=4 head_dim=8 dtype=fp64 mask=full layout=sbhd"}) {
    SCOPED_TRACE(line);
    LiveTensors tensors(line);
    const Result<Dump> dump = dump_of(tensors, 0, 0, 0);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    EXPECT_EQ(dump.value().record().problem, tensors.problem());
    EXPECT_EQ(dump.value().record().scope, whole_call(tensors.problem()));
    EXPECT_EQ(cut_text(tensors.problem(), dump.value().record().scope), "");
    expect_same_tensors(tensors, dump.value());
  }
}

TEST(Dump, HoldsWhatWasFound) {
  LiveTensors tensors("num_heads=2 seq_len=5 head_dim=8 mask=full");
  TestViolation violation(tensors, 0, 1, 3, kActionDump);
  violation.findings[0].observed = std::nan("");
  violation.findings[0].bound = INFINITY;
  violation.findings[0].message = "quote \" and \xff";
  const DumpFolder folder;
  DumpWriter writer(settings_of(folder), "my \"engine\"", {});
  ASSERT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  const Result<Dump> dump = Dump::load(folder.files().at(0));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  const DumpRecord& record = dump.value().record();
  EXPECT_EQ(record.engine, "my \"engine\"");
  EXPECT_EQ(record.layer, "blk.7.attn");
  EXPECT_EQ(record.check, "recompute");
  EXPECT_EQ(record.severity, "error");
  EXPECT_EQ(record.seed, 5u);
  EXPECT_EQ(record.call_number, 17u);
  ASSERT_EQ(record.findings.size(), 1u);
  EXPECT_EQ(record.findings[0].head, 1);
  EXPECT_EQ(record.findings[0].query, 3);
  EXPECT_TRUE(std::isnan(record.findings[0].observed));
  EXPECT_EQ(record.findings[0].bound, INFINITY);
  EXPECT_EQ(record.numerics.probability, Dtype::kFp32);
  EXPECT_FALSE(record.in_scratch);
}

TEST(Dump, KeepsTheMaskThatTheEngineWasGiven) {
  LiveTensors tensors(
      "seq_len=4 head_dim=8 mask=causal_bottom_right mask_form=boolean");
  std::vector<std::byte> mask(16, std::byte{0});
  mask[1 * 4 + 2] = std::byte{1};
  TestViolation violation(tensors, 0, 0, 1, kActionDump);
  violation.call.mask = {MaskForm::kBoolean, mask.data()};
  const DumpFolder folder;
  DumpWriter writer(settings_of(folder), "x", {});
  ASSERT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  const Result<Dump> dump = Dump::load(folder.files().at(0));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  KeyRanges keys;
  dump.value().allowed(0, 1, keys);
  EXPECT_THAT(keys.ranges(), ElementsAre(KeyRange{2, 3}));
  dump.value().allowed(0, 0, keys);
  EXPECT_TRUE(keys.empty());
}

TEST(Dump, KeepsTheMaskThatTheHostSaid) {
  class OnlyKeyTwo final : public RowMask {
    void allowed(const RowPlace&, KeyRanges& out) const override {
      out.clear();
      out.append(2, 3);
    }
  };
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  TestViolation violation(tensors, 0, 0, 1, kActionDump);
  const OnlyKeyTwo mask;
  violation.context.mask = &mask;
  const DumpFolder folder;
  DumpWriter writer(settings_of(folder), "x", {});
  ASSERT_TRUE(writer.take(violation.violation));
  ASSERT_TRUE(writer.flush(kLong));
  const Result<Dump> dump = Dump::load(folder.files().at(0));
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  KeyRanges keys;
  dump.value().allowed(0, 3, keys);
  EXPECT_THAT(keys.ranges(), ElementsAre(KeyRange{2, 3}));
}

TEST(Dump, IsCutToWhatTheFindingNeeds) {
  LiveTensors tensors(
      "batch=4 num_heads=8 num_kv_heads=2 seq_len_q=32 seq_len_kv=64 "
      "head_dim=16 mask=causal_bottom_right");
  struct Case {
    std::int64_t bytes;
    IndexSpan batch, heads, kv_heads;
  };
  std::int64_t smallest_queries = 32;
  for (const Case& one : {Case{1 << 22, {0, 4}, {0, 8}, {0, 2}},
                          Case{80'000, {2, 1}, {0, 8}, {0, 2}},
                          Case{45'000, {2, 1}, {4, 4}, {1, 1}},
                          Case{20'000, {2, 1}, {5, 1}, {1, 1}},
                          Case{13'000, {2, 1}, {5, 1}, {1, 1}}}) {
    SCOPED_TRACE(one.bytes);
    const Result<Dump> dump = dump_of(tensors, 2, 5, 20, one.bytes);
    ASSERT_TRUE(dump.ok()) << dump.status().message();
    const CaptureScope& scope = dump.value().record().scope;
    EXPECT_EQ(scope.batch, one.batch);
    EXPECT_EQ(scope.heads, one.heads);
    EXPECT_EQ(scope.kv_heads, one.kv_heads);
    EXPECT_TRUE(scope.holds_row(2, 5, 20));
    smallest_queries = std::min(smallest_queries, scope.queries.count);
    expect_same_tensors(tensors, dump.value());
  }
  EXPECT_LT(smallest_queries, 32);
}

// A good file's metadata with one text replaced.
std::string error_with(const std::string& key, const std::string& value) {
  LiveTensors tensors("num_heads=2 seq_len=4 head_dim=8 mask=full");
  const AttentionCall call = tensors.call();
  DumpRecord record{.problem = tensors.problem(),
                    .scope = whole_call(tensors.problem())};
  record.findings.push_back({});
  record.num_findings = 1;
  SafetensorsMetadata metadata = dump_metadata(record);
  metadata[key] = value;
  std::vector<StoredTensor> parts = capture_layout({&call}, record.scope);
  std::vector<std::byte> bytes(capture_bytes({&call}, record.scope));
  capture_tensors({&call}, record.scope, parts, bytes.data());
  const std::string header = safetensors_header(parts, metadata).value();
  const auto* begin = reinterpret_cast<const std::byte*>(header.data());
  std::vector<std::byte> file(begin, begin + header.size());
  file.insert(file.end(), bytes.begin(), bytes.end());
  Result<Safetensors> parsed = Safetensors::parse(std::move(file), "f");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  const Result<Dump> dump = Dump::from(std::move(parsed.value()), "f");
  return dump.ok() ? "no error" : dump.status().message();
}

TEST(Dump, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(error_with("engine", "any"), "no error");
  struct Wrong {
    const char *key, *value, *message;
  };
  for (const Wrong& wrong : {
           Wrong{"format", "", "not one that the live guard wrote"},
           Wrong{"format_version", "2", "reads version 1"},
           Wrong{"tensors", "none",
                 "metadata 'tensors': it says none, and the file has '"},
           Wrong{"tensors", "some", "expected 'none' or nothing, got 'some'"},
           Wrong{"problem", "seq_len=", "metadata 'problem': "},
           Wrong{"problem", "num_heads=2 seq_len=5 head_dim=8 mask=full",
                 "tensor 'key' is F32 [1, 2, 4, 8]; the problem says"},
           Wrong{"problem", "num_heads=2 seq_len=4 head_dim=9 mask=full",
                 "tensor 'query' is F32 [1, 2, 4, 8]; the problem says"},
           Wrong{"problem",
                 "num_heads=2 seq_len=4 head_dim=8 dtype=fp16 mask=full",
                 "the problem says F16"},
           Wrong{"batch", "0:2", "no part of 0:1"},
           Wrong{"batch", "0", "expected FIRST:END"},
           Wrong{"heads", "-1:1", "no part of 0:2"},
           Wrong{"heads", "1:1", "no part of 0:2"},
           Wrong{"kv_heads", "0:1", "KV head of head 1 is not among 0:1"},
           Wrong{"queries", "0:99999999999999999999", "expected FIRST:END"},
           Wrong{"numerics", "", "no JSON"},
           Wrong{"numerics", "[]", "no JSON object"},
           Wrong{"numerics", "{}", "score is no dtype"},
           Wrong{"findings", "{}", "no JSON list"},
           Wrong{"findings", "[1]", "an entry is no object"},
           Wrong{"findings", "[{}]", "is no kind of finding"},
           Wrong{"findings", R"([{"kind":"leak"}])", "batch is no whole"},
           Wrong{"num_findings", "0", "less than the findings"},
           Wrong{"seed", "x", "metadata 'seed'"},
           Wrong{"call_number", "-1", "metadata 'call_number'"},
       }) {
    const std::string message = error_with(wrong.key, wrong.value);
    EXPECT_THAT(message, HasSubstr(wrong.message)) << wrong.value;
    EXPECT_TRUE(message.starts_with("f: ")) << message;
  }
}

// Nothing but the metadata's word makes a file without tensors a good one.
TEST(Dump, AFileWithoutTensorsSaysSo) {
  const auto load = [](const SafetensorsMetadata& metadata) {
    const std::string header = safetensors_header({}, metadata).value();
    const auto* begin = reinterpret_cast<const std::byte*>(header.data());
    Result<Safetensors> file =
        Safetensors::parse({begin, begin + header.size()}, "f");
    EXPECT_TRUE(file.ok()) << file.status().message();
    return Dump::from(std::move(file.value()), "f");
  };
  DumpRecord record{.has_tensors = false};
  record.check = "engine";
  record.engine_check = "mask";
  record.engine_text = "two\nlines";
  const SafetensorsMetadata good = dump_metadata(record);
  EXPECT_FALSE(good.contains("problem"));
  const Result<Dump> dump = load(good);
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_FALSE(dump.value().record().has_tensors);
  EXPECT_EQ(dump.value().record().engine_check, "mask");
  EXPECT_EQ(dump.value().record().engine_text, "two\nlines");
  SafetensorsMetadata silent = good;
  silent.erase("tensors");
  EXPECT_FALSE(load(silent).ok());
  SafetensorsMetadata unfinished = good;
  unfinished.erase("findings");
  EXPECT_THAT(load(unfinished).status().message(),
              HasSubstr("metadata 'findings'"));
}

}  // namespace
}  // namespace attnguard
