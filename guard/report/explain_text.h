// The explain pages of checks as Markdown.
#ifndef ATTNGUARD_GUARD_REPORT_EXPLAIN_TEXT_H_
#define ATTNGUARD_GUARD_REPORT_EXPLAIN_TEXT_H_

#include <string>
#include <string_view>

namespace attnguard {

// The first paragraph below the page's first heading, on one line; empty when
// there is none.
std::string explain_lead(std::string_view page);

// The page without its title: headings are bold, pictures are code blocks.
std::string explain_markdown(std::string_view page);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_EXPLAIN_TEXT_H_
