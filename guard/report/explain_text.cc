#include "guard/report/explain_text.h"

#include <algorithm>
#include <vector>

#include "guard/base/text.h"
#include "guard/report/safe_text.h"

// A page is a title, then sections: a heading in column 0, text indented by
// two, pictures and tables by more.
namespace attnguard {
namespace {

constexpr std::size_t kTextIndent = 2;
constexpr std::size_t kPictureIndent = 4;

std::vector<std::string_view> page_lines(std::string_view page) {
  std::vector<std::string_view> lines;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    lines.push_back(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  return lines;
}

// npos for a blank line.
std::size_t indent_of(std::string_view line) {
  return line.find_first_not_of(' ');
}

}  // namespace

std::string explain_lead(std::string_view page) {
  std::string lead;
  const std::vector<std::string_view> lines = page_lines(page);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t indent = indent_of(lines[i]);
    if (indent == kTextIndent)
      lead += (lead.empty() ? "" : " ") + std::string(trim(lines[i]));
    else if (!lead.empty())
      break;
  }
  return lead;
}

std::string explain_markdown(std::string_view page) {
  std::string out;
  bool in_picture = false;
  const std::vector<std::string_view> lines = page_lines(page);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t indent = indent_of(lines[i]);
    if (indent == std::string_view::npos) {
      out += "\n";
      continue;
    }
    // Further indented text that continues a paragraph is no picture.
    const bool after_blank = trim(lines[i - 1]).empty();
    in_picture = indent >= kPictureIndent && (in_picture || after_blank);
    if (indent == 0)
      out += "**" + markdown_text(lines[i]) + "**\n\n";
    else if (in_picture)
      out += "    " + std::string(lines[i].substr(kPictureIndent)) + "\n";
    else
      out += markdown_text(trim(lines[i])) + "\n";
  }
  const std::size_t begin = std::min(out.find_first_not_of('\n'), out.size());
  const std::size_t end = out.find_last_not_of('\n');
  return end == std::string::npos ? "" : out.substr(begin, end + 1 - begin);
}

}  // namespace attnguard
