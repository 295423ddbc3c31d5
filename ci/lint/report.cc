#include <nlohmann/json.hpp>
#include <sstream>

#include "ci/lint/lint.h"
#include "guard/base/version.h"
#include "guard/report/safe_text.h"

namespace attnguard::lint {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string seen_text(const FileResult& result) {
  const std::size_t seen = result.plain + result.fused;
  if (seen == 0) return "no attention found, so nothing was checked";
  return counted(seen, "attention") + " seen (" + std::to_string(result.plain) +
         " of plain operators, " + std::to_string(result.fused) + " fused)";
}

std::string verdict_of(const FileResult& result) {
  if (!result.status.ok()) return "unreadable";
  if (result.violations() > 0) return "violation";
  return result.plain + result.fused == 0 ? "inconclusive" : "pass";
}

// GitHub ends a message at a line break unless it is written so.
std::string escaped(const std::string& text, bool property) {
  std::string made;
  for (char c : text) {
    if (c == '%')
      made += "%25";
    else if (c == '\r')
      made += "%0D";
    else if (c == '\n')
      made += "%0A";
    else if (property && c == ':')
      made += "%3A";
    else if (property && c == ',')
      made += "%2C";
    else
      made += c;
  }
  return made;
}

std::string annotation(const std::string& level, const std::string& file,
                       const std::string& title, const std::string& message) {
  return "::" + level + " file=" + escaped(file, true) +
         ",title=" + escaped(title, true) + "::" + escaped(message, false) +
         "\n";
}

// Names come from the file: one line each, whatever they hold.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

}  // namespace

namespace {

// The text in lines of at most 98 characters, each indented by two; words
// that are longer stay whole.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 96;
  std::string out, line;
  std::istringstream words(one_line(text));
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      out += "  " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + "  " + line + "\n";
}

}  // namespace

std::string text_report(const std::vector<FileResult>& results) {
  std::string out;
  for (const FileResult& result : results) {
    if (!result.status.ok()) continue;  // The command has said so.
    for (const Finding& finding : result.findings)
      out += one_line(result.file + ": " + (finding.note ? "note: " : "") +
                      std::string(finding.rule) + ": node '" + finding.node +
                      "'") +
             "\n" + wrapped(finding.message) + wrapped("fix: " + finding.fix);
    for (const std::string& note : result.notes)
      out += one_line(result.file + ": note: " + note) + "\n";
    out += one_line(result.file + ": " + verdict_of(result)) + ": " +
           counted(result.violations(), "finding") + ", " + seen_text(result) +
           "\n";
  }
  return terminal_text(out);
}

std::string json_report(const std::vector<FileResult>& results) {
  Json files = Json::array();
  for (const FileResult& result : results) {
    Json findings = Json::array();
    for (const Finding& finding : result.findings)
      findings.push_back({{"rule", finding.rule},
                          {"severity", finding.note ? "note" : "violation"},
                          {"node", finding.node},
                          {"message", finding.message},
                          {"fix", finding.fix}});
    files.push_back(
        {{"file", result.file},
         {"verdict", verdict_of(result)},
         {"error", result.status.ok() ? Json() : Json(result.status.message())},
         {"attentions", {{"plain", result.plain}, {"fused", result.fused}}},
         {"findings", std::move(findings)},
         {"notes", result.notes}});
  }
  const Json report = {
      {"schema_version", kSchemaVersion},
      {"tool", {{"name", "attnguard"}, {"version", version_string()}}},
      {"files", std::move(files)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string github_report(const std::vector<FileResult>& results) {
  std::string out;
  for (const FileResult& result : results) {
    if (!result.status.ok())
      out += annotation("error", result.file, "attnguard lint",
                        result.status.message());
    for (const Finding& finding : result.findings)
      out += annotation(finding.note ? "notice" : "error", result.file,
                        std::string(finding.rule),
                        "node '" + finding.node + "': " + finding.message +
                            ". Fix: " + finding.fix);
    for (const std::string& note : result.notes)
      out += annotation("notice", result.file, "attnguard lint", note);
    if (verdict_of(result) == "inconclusive")
      out += annotation("warning", result.file, "attnguard lint",
                        seen_text(result));
  }
  return terminal_text(out);
}

}  // namespace attnguard::lint
