#include "adapters/gtest/group_name.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "guard/report/report.h"

namespace attnguard {
namespace {

// Fields that every name holds in short form.
constexpr std::array<std::string_view, 10> kShort = {
    "batch",       "num_heads",  "num_kv_heads", "seq_len_q", "seq_len_kv",
    "head_dim_qk", "head_dim_v", "dtype",        "mask",      "layout"};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9');
}

// Everything else becomes one '_'; a minus between is told from none.
std::string plain(std::string_view text) {
  std::string name;
  for (char c : text) {
    if (c == '-') name += "minus";
    if (is_plain(c))
      name += c;
    else if (c != '-' && !name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

std::string field(const Problem& problem, std::string_view name) {
  const ProblemField* found = find_problem_field(name);
  if (found == nullptr || found->get == nullptr) return {};
  return plain(found->get(problem));
}

std::string pair(std::int64_t first, std::int64_t second) {
  std::string text = std::to_string(first);
  if (second != first) text += "x" + std::to_string(second);
  return text;
}

}  // namespace

std::string group_name(const Problem& problem) {
  std::string name = "b" + std::to_string(problem.batch) + "_h" +
                     pair(problem.num_heads, problem.num_kv_heads) + "_q" +
                     field(problem, "seq_len_q") + "_kv" +
                     field(problem, "seq_len_kv") + "_d" +
                     pair(problem.head_dim_qk, problem.head_dim_v) + "_" +
                     std::string(dtype_info(problem.dtype).name) + "_" +
                     plain(problem.mask.text());
  if (const std::string layout = field(problem, "layout"); !layout.empty())
    name += "_" + layout;
  for (const ProblemField& each : all_problem_fields()) {
    if (each.get == nullptr ||
        std::find(kShort.begin(), kShort.end(), each.name) != kShort.end())
      continue;
    const std::string value = plain(each.get(problem));
    if (!value.empty()) name += "_" + std::string(each.name) + "_" + value;
  }
  return name;
}

std::string render_test_report(const RunResult& run) {
  const ReportFormat* text = find_report_format("text");
  if (text == nullptr) return {};
  const std::string report = text->render({&run, 1}, {});
  const std::size_t title = report.find("\n\n");
  return title == std::string::npos ? report : report.substr(title + 2);
}

}  // namespace attnguard
