#include "guard/runtime/dump_file.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "guard/base/text.h"
#include "guard/base/version.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "attnguard-dump";
constexpr std::string_view kFormatVersion = "1";
constexpr std::string_view kNoTensors = "none";

// Elements of the whole call beyond which a file is not believed: views are
// indexed with 64-bit offsets in its terms.
constexpr double kMostDumped = 1e15;

// JSON has no NaN and no infinities: they are texts.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return format_double(value);
}

std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Json dumped_finding(const Finding& finding) {
  return {{"kind", finding_kind_name(finding.kind)},
          {"probe", finding.probe},
          {"batch", finding.batch},
          {"head", finding.head},
          {"query", finding.query},
          {"key", finding.key},
          {"channel", finding.channel},
          {"observed", number(finding.observed)},
          {"expected", number(finding.expected)},
          {"bound", number(finding.bound)},
          {"message", finding.message}};
}

std::string findings_text(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back(dumped_finding(finding));
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string numerics_text(const Numerics& numerics) {
  const Json json = {{"score", dtype_name(numerics.score)},
                     {"probability", dtype_name(numerics.probability)},
                     {"accumulator", dtype_name(numerics.accumulator)},
                     {"max_input", number(numerics.max_input)},
                     {"key_error", number(numerics.key_error)},
                     {"value_error", number(numerics.value_error)}};
  return json.dump();
}

std::string time_text(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  char text[32] = "";
  if (gmtime_r(&time, &parts) != nullptr)
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Status bad_dump(std::string_view key, const std::string& what) {
  return invalid_argument("metadata '" + std::string(key) + "': " + what);
}

// Reads the metadata of one file.
class RecordReader {
 public:
  explicit RecordReader(const Safetensors& file) : file_(file) {}

  Status read(DumpRecord& record) {
    if (file_.text("format") != kFormat)
      return invalid_argument(
          "it is a safetensors file, but not one that the live guard wrote: "
          "its metadata have no format=attnguard-dump");
    if (file_.text("format_version") != kFormatVersion)
      return bad_dump(
          "format_version",
          "this attnguard reads version 1; use the one that wrote it");
    record.engine = file_.text("engine");
    record.layer = file_.text("layer");
    record.check = file_.text("check");
    record.engine_check = file_.text("engine_check");
    record.engine_text = file_.text("engine_text");
    record.severity = file_.text("severity");
    record.version = file_.text("attnguard_version");
    record.in_scratch = file_.text("source") == "scratch";
    for (Status (RecordReader::*part)(DumpRecord&) :
         {&RecordReader::read_whether_tensors, &RecordReader::read_problem,
          &RecordReader::read_scope, &RecordReader::read_numerics,
          &RecordReader::read_findings, &RecordReader::read_numbers})
      if (Status status = (this->*part)(record); !status.ok()) return status;
    return ok_status();
  }

 private:
  Status read_whether_tensors(DumpRecord& record) {
    const std::string_view text = file_.text("tensors");
    record.has_tensors = text.empty();
    if (record.has_tensors) return ok_status();
    if (text != kNoTensors)
      return bad_dump("tensors", "expected 'none' or nothing, got '" +
                                     std::string(text.substr(0, 40)) + "'");
    if (file_.tensors().empty()) return ok_status();
    return bad_dump("tensors", "it says none, and the file has '" +
                                   file_.tensors().front().name + "'");
  }

  Status read_problem(DumpRecord& record) {
    if (!record.has_tensors) return ok_status();
    Result<Problem> problem = Problem::parse(file_.text("problem"));
    if (!problem.ok()) return bad_dump("problem", problem.status().message());
    record.problem = std::move(problem.value());
    return ok_status();
  }

  Status read_span(std::string_view key, std::int64_t of, IndexSpan& span) {
    const std::string_view text = file_.text(key);
    const std::size_t colon = text.find(':');
    const auto first = parse_int(text.substr(0, colon));
    const auto end = colon == std::string_view::npos
                         ? std::nullopt
                         : parse_int(text.substr(colon + 1));
    if (!first || !end)
      return bad_dump(key, "expected FIRST:END, got '" +
                               std::string(text.substr(0, 40)) + "'");
    if (*first < 0 || *end <= *first || *end > of)
      return bad_dump(key, std::string(text) + " is no part of 0:" +
                               std::to_string(of) + ", which the problem has");
    span = {*first, *end - *first};
    return ok_status();
  }

  Status read_scope(DumpRecord& record) {
    if (!record.has_tensors) return ok_status();
    const Problem& problem = record.problem;
    CaptureScope& scope = record.scope;
    for (const Status& status :
         {read_span("batch", problem.batch, scope.batch),
          read_span("heads", problem.num_heads, scope.heads),
          read_span("kv_heads", problem.num_kv_heads, scope.kv_heads),
          read_span("queries", problem.max_len_q(), scope.queries)})
      if (!status.ok()) return status;
    for (std::int64_t head : {scope.heads.first, scope.heads.end() - 1})
      if (!scope.kv_heads.contains(problem.kv_head_of(head)))
        return bad_dump("kv_heads",
                        "the KV head of head " + std::to_string(head) +
                            " is not among " + scope.kv_heads.text());
    return ok_status();
  }

  Result<Json> json_of(std::string_view key) {
    Json json = Json::parse(file_.text(key), nullptr, false);
    if (json.is_discarded()) return bad_dump(key, "no JSON");
    return json;
  }

  Status read_numerics(DumpRecord& record) {
    if (!record.has_tensors) return ok_status();
    Result<Json> json = json_of("numerics");
    if (!json.ok()) return json.status();
    if (!json.value().is_object())
      return bad_dump("numerics", "no JSON object");
    Numerics& numerics = record.numerics;
    for (auto [key, dtype] :
         {std::pair{"score", &numerics.score},
          std::pair{"probability", &numerics.probability},
          std::pair{"accumulator", &numerics.accumulator}}) {
      const Json value = json.value().value(key, Json());
      const auto parsed = value.is_string()
                              ? parse_dtype(value.get<std::string>())
                              : std::nullopt;
      if (!parsed)
        return bad_dump("numerics", std::string(key) + " is no dtype");
      *dtype = *parsed;
    }
    for (auto [key, to] : {std::pair{"max_input", &numerics.max_input},
                           std::pair{"key_error", &numerics.key_error},
                           std::pair{"value_error", &numerics.value_error}}) {
      const auto parsed = number_of(json.value().value(key, Json()));
      if (!parsed || !(*parsed >= 0))
        return bad_dump("numerics",
                        std::string(key) + " is no number from 0 on");
      *to = *parsed;
    }
    return ok_status();
  }

  Status read_findings(DumpRecord& record) {
    Result<Json> json = json_of("findings");
    if (!json.ok()) return json.status();
    if (!json.value().is_array()) return bad_dump("findings", "no JSON list");
    for (const Json& entry : json.value()) {
      if (!entry.is_object())
        return bad_dump("findings", "an entry is no object");
      Finding finding;
      for (const Status& status :
           {read_kind(entry, finding), read_places(entry, finding),
            read_values(entry, finding)})
        if (!status.ok()) return status;
      record.findings.push_back(std::move(finding));
    }
    return ok_status();
  }

  static Status read_kind(const Json& entry, Finding& finding) {
    const auto text_of = [&entry](const char* key) {
      const Json value = entry.value(key, Json());
      return value.is_string() ? value.get<std::string>() : std::string();
    };
    finding.probe = text_of("probe");
    finding.message = text_of("message");
    const std::string kind = text_of("kind");
    for (int i = 0; i <= static_cast<int>(FindingKind::kOutOfBounds); ++i) {
      finding.kind = static_cast<FindingKind>(i);
      if (finding_kind_name(finding.kind) == kind) return ok_status();
    }
    return bad_dump("findings",
                    "'" + kind.substr(0, 40) + "' is no kind of finding");
  }

  static Status read_places(const Json& entry, Finding& finding) {
    for (auto [key, to] :
         {std::pair{"batch", &finding.batch}, std::pair{"head", &finding.head},
          std::pair{"query", &finding.query}, std::pair{"key", &finding.key},
          std::pair{"channel", &finding.channel}}) {
      const Json value = entry.value(key, Json());
      if (!value.is_number_integer())
        return bad_dump("findings", std::string(key) + " is no whole number");
      *to = value.get<std::int64_t>();
    }
    return ok_status();
  }

  static Status read_values(const Json& entry, Finding& finding) {
    for (auto [key, to] : {std::pair{"observed", &finding.observed},
                           std::pair{"expected", &finding.expected},
                           std::pair{"bound", &finding.bound}}) {
      const auto value = number_of(entry.value(key, Json()));
      if (!value)
        return bad_dump("findings", std::string(key) + " is no number");
      *to = *value;
    }
    return ok_status();
  }

  Status read_numbers(DumpRecord& record) {
    for (auto [key, to] : {std::pair{"seed", &record.seed},
                           std::pair{"call_number", &record.call_number}}) {
      const std::string_view text = file_.text(key);
      const char* end = text.data() + text.size();
      const auto [at, error] = std::from_chars(text.data(), end, *to);
      if (error != std::errc() || at != end)
        return bad_dump(key, "is missing or no whole number");
    }
    const auto count = parse_int(file_.text("num_findings"));
    if (!count || *count < static_cast<std::int64_t>(record.findings.size()))
      return bad_dump("num_findings",
                      "is missing, or less than the findings there");
    record.num_findings = *count;
    return ok_status();
  }

  const Safetensors& file_;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::int64_t length : shape)
    text += (text.empty() ? "[" : ", ") + std::to_string(length);
  return text + "]";
}

Status check_tensor(const Safetensors& file, const StoredTensor& expected,
                    bool required) {
  const StoredTensor* tensor = file.find(expected.name);
  if (tensor == nullptr)
    return required
               ? invalid_argument("tensor '" + expected.name + "' is missing")
               : ok_status();
  if (tensor->type != expected.type || tensor->shape != expected.shape)
    return invalid_argument(
        "tensor '" + expected.name + "' is " + std::string(tensor->type->name) +
        " " + shape_text(tensor->shape) + "; the problem says " +
        std::string(expected.type->name) + " " + shape_text(expected.shape));
  return ok_status();
}

// What the problem and the scope say about each tensor.
Status check_tensors(const Safetensors& file, const DumpRecord& record) {
  const Problem& problem = record.problem;
  double elements = 1;
  for (std::int64_t length :
       {problem.batch, problem.num_heads,
        std::max(problem.max_len_q(), problem.max_len_kv()),
        std::max(problem.head_dim_qk, problem.head_dim_v)})
    elements *= static_cast<double>(length);
  if (elements > kMostDumped)
    return bad_dump("problem", "it is too large to index");
  // A call of the whole problem has all tensors that there can be.
  static constexpr std::byte kGiven{};
  const AttentionCall call{
      .problem = &problem,
      .mask = {problem.mask_form,
               problem.mask_form == MaskForm::kImplied ? nullptr : &kGiven}};
  for (const StoredTensor& expected :
       capture_layout({&call, nullptr}, record.scope))
    if (Status status = check_tensor(file, expected, expected.name != "mask");
        !status.ok())
      return status;
  const StoredTensor allowed = {
      "allowed",
      find_stored_type("U8"),
      {record.scope.batch.count, record.scope.queries.count,
       problem.max_len_kv()}};
  return check_tensor(file, allowed, false);
}

// What only a file with tensors says.
SafetensorsMetadata call_metadata(const DumpRecord& record) {
  const std::string cut = cut_text(record.problem, record.scope);
  return {{"problem", record.problem.text()},
          {"batch", record.scope.batch.text()},
          {"heads", record.scope.heads.text()},
          {"kv_heads", record.scope.kv_heads.text()},
          {"queries", record.scope.queries.text()},
          {"cut", cut.empty() ? "nothing" : cut},
          {"numerics", numerics_text(record.numerics)}};
}

}  // namespace

std::string cut_text(const Problem& problem, const CaptureScope& scope) {
  const CaptureScope whole = whole_call(problem);
  std::string text;
  const auto add = [&text](std::string_view what, const IndexSpan& kept,
                           const IndexSpan& all) {
    if (kept == all) return;
    text += (text.empty() ? "" : "; ") + std::string(what) + " " + kept.text() +
            " of " + std::to_string(all.count) + " are kept";
  };
  add("batch entries", scope.batch, whole.batch);
  add("heads", scope.heads, whole.heads);
  add("KV heads", scope.kv_heads, whole.kv_heads);
  add("queries", scope.queries, whole.queries);
  return text;
}

SafetensorsMetadata dump_metadata(const DumpRecord& record) {
  SafetensorsMetadata texts = {
      {"format", std::string(kFormat)},
      {"format_version", std::string(kFormatVersion)},
      {"attnguard_version", std::string(version_string())},
      {"engine", record.engine},
      {"layer", record.layer},
      {"check", record.check},
      {"severity", record.severity},
      {"findings", findings_text(record.findings)},
      {"num_findings", std::to_string(record.num_findings)},
      {"source", record.in_scratch ? "scratch" : "engine"},
      {"seed", std::to_string(record.seed)},
      {"call_number", std::to_string(record.call_number)},
      {"time", time_text(record.time)}};
  if (!record.engine_check.empty()) texts["engine_check"] = record.engine_check;
  if (!record.engine_text.empty()) texts["engine_text"] = record.engine_text;
  if (record.has_tensors)
    texts.merge(call_metadata(record));
  else
    texts["tensors"] = kNoTensors;
  return texts;
}

Result<Dump> Dump::load(const std::string& path) {
  Result<Safetensors> file = Safetensors::load(path);
  if (!file.ok()) return file.status();
  return from(std::move(file.value()), path);
}

Result<Dump> Dump::from(Safetensors file, std::string_view name) {
  Dump dump;
  dump.file_ = std::move(file);
  Status status = RecordReader(dump.file_).read(dump.record_);
  if (status.ok() && dump.record_.has_tensors)
    status = check_tensors(dump.file_, dump.record_);
  if (!status.ok())
    return Status(status.code(), std::string(name) + ": " + status.message());
  return dump;
}

ConstTensorView Dump::view(std::string_view name) const {
  if (!record_.has_tensors) return {};
  const StoredTensor& tensor = *file_.find(name);
  const CaptureScope& scope = record_.scope;
  const bool rows = name == "query" || name == "output";
  ConstTensorView view;
  view.dtype = *tensor.type->dtype;
  Shape4 kept = {};
  std::copy(tensor.shape.begin(), tensor.shape.end(), kept.begin());
  view.strides = contiguous_strides(kept);
  view.shape = record_.problem.shape(name == "query"    ? TensorRole::kQuery
                                     : name == "output" ? TensorRole::kOutput
                                     : name == "key"    ? TensorRole::kKey
                                                        : TensorRole::kValue);
  // Where element 0 of the whole call would be.
  view.data = tensor.data.data() -
              static_cast<std::int64_t>(tensor.type->size) *
                  view.offset(scope.batch.first,
                              rows ? scope.heads.first : scope.kv_heads.first,
                              rows ? scope.queries.first : 0);
  return view;
}

void Dump::allowed(std::int64_t b, std::int64_t query, KeyRanges& keys) const {
  const Problem& problem = record_.problem;
  const StoredTensor* said = file_.find("allowed");
  // An implied mask has no tensor: one that the file has all the same was not
  // looked at when it was read.
  const StoredTensor* mask =
      problem.mask_form == MaskForm::kImplied ? nullptr : file_.find("mask");
  const StoredTensor* tensor = said != nullptr ? said : mask;
  if (tensor == nullptr) {
    problem.mask.allowed(problem.row(b, query), keys);
    return;
  }
  const CaptureScope& scope = record_.scope;
  const std::byte* row =
      tensor->data.data() + ((b - scope.batch.first) * scope.queries.count +
                             query - scope.queries.first) *
                                problem.max_len_kv() *
                                static_cast<std::int64_t>(tensor->type->size);
  keys.clear();
  for (std::int64_t j = 0; j < problem.len_kv(b); ++j) {
    bool may = row[j] != std::byte{0};
    if (tensor == mask && problem.mask_form == MaskForm::kInverted) may = !may;
    if (tensor == mask && problem.mask_form == MaskForm::kAdditive) {
      double element = 0;
      decode(problem.dtype,
             row + j * static_cast<std::int64_t>(tensor->type->size), 1, 1,
             &element);
      may = element == 0;
    }
    if (may) keys.append(j, j + 1);
  }
}

}  // namespace attnguard
