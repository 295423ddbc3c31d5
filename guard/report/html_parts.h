// The parts of the HTML report. Each returns markup in which every text from
// outside is escaped; an id is a prefix that is unique in the page.
#ifndef ATTNGUARD_GUARD_REPORT_HTML_PARTS_H_
#define ATTNGUARD_GUARD_REPORT_HTML_PARTS_H_

#include <span>
#include <string>
#include <string_view>

#include "guard/finding/result.h"
#include "guard/report/failure_group.h"
#include "guard/report/report.h"

namespace attnguard {

// All of the page's style, light and dark.
std::string html_style();

// The class of a verdict, its sign and its words: "✕ violation".
std::string_view verdict_css(Verdict verdict);
std::string verdict_badge(Verdict verdict);
std::string warning_badge();

// A table that scrolls by itself when it is too wide; `head` and `rows` are
// complete rows, the caption is text.
std::string html_table(std::string_view caption, const std::string& head,
                       const std::string& rows);

// What opens on a click, without a script.
std::string html_details(std::string_view summary, const std::string& inside,
                         bool open = false);

// Of at most so many bytes, escaped, for names and problem lines.
std::string html_name(std::string_view text);

// The whole matrix of the problem with the findings in it; empty where no
// finding has a place in one.
std::string html_whole_matrix(const ProblemResult& problem,
                              const std::string& id);

// The influence map: expected, observed, both in one, and its wrong cells one
// by one. Empty without a map.
std::string html_influence_map(const ProblemResult& problem,
                               const std::string& id);

// The sums of weights of a head's rows against what they should be; empty
// where no finding is of that kind.
std::string html_row_mass(const ProblemResult& problem, const std::string& id);

// One group of failures: pictures, findings, diagnosis and replay line.
std::string html_group(const FailureGroup& group, const std::string& id);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_HTML_PARTS_H_
