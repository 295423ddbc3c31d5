// The row-mass plot of the HTML report.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "guard/base/text.h"
#include "guard/report/html_parts.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr double kWidth = 560, kHeight = 200;
constexpr double kLeft = 46, kTop = 16, kBottom = 34;
constexpr double kRight = 60;  // The word "expected" has its place there.

struct Masses {
  std::int64_t batch = 0, head = 0;
  std::vector<const Finding*> rows;  // By query.
  bool complete = false;             // All findings of the check are here.
};

// Those of the head that the first finding of the kind names.
Masses masses_of(const ProblemResult& problem) {
  Masses masses;
  for (const CheckResult& check : problem.checks) {
    for (const Finding& finding : check.findings) {
      if (finding.kind != FindingKind::kMass || finding.query < 0) continue;
      if (masses.rows.empty()) {
        masses.batch = finding.batch;
        masses.head = finding.head;
        masses.complete = check.num_findings <= std::ssize(check.findings);
      }
      if (finding.batch == masses.batch && finding.head == masses.head)
        masses.rows.push_back(&finding);
    }
    if (!masses.rows.empty()) break;
  }
  std::ranges::stable_sort(masses.rows, {}, &Finding::query);
  return masses;
}

std::string axis_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value)
                              : format_double(value);
}

class Plot {
 public:
  explicit Plot(const Masses& masses) : masses_(masses) {
    first_ = masses.rows.front()->query;
    last_ = std::max(masses.rows.back()->query, first_ + 1);
    for (const Finding* row : masses.rows)
      for (double value : {row->observed, row->expected})
        if (std::isfinite(value)) {
          top_ = std::max(top_, value);
          bottom_ = std::min(bottom_, value);
        }
    top_ += 0.05 * (top_ - bottom_);
  }

  std::string svg(const std::string& id, const std::string& words) const {
    return fmt::format(
               "<svg class=\"plot\" role=\"img\" aria-labelledby=\"{0}-title\" "
               "viewBox=\"0 0 {1} {2}\" width=\"{1}\" height=\"{2}\"><title "
               "id=\"{0}-title\">{3}</title>",
               id, kWidth, kHeight, html_text(words)) +
           axes() + expected() + observed() + "</svg>";
  }

 private:
  double x(double query) const {
    return kLeft + (query - static_cast<double>(first_) + 0.5) /
                       static_cast<double>(last_ - first_ + 1) *
                       (kWidth - kLeft - kRight);
  }
  double y(double mass) const {
    return kHeight - kBottom -
           (mass - bottom_) / (top_ - bottom_) * (kHeight - kTop - kBottom);
  }

  std::string axes() const {
    std::string out =
        fmt::format("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>", kLeft,
                    kTop, kHeight - kBottom, kWidth - kRight);
    out += fmt::format("<text x=\"{}\" y=\"{}\">query</text>",
                       (kLeft + kWidth - kRight) / 2 - 14, kHeight - 6);
    for (std::int64_t query : {first_, last_})
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
          x(static_cast<double>(query)), kHeight - kBottom + 14, query);
    for (double mass : {bottom_, top_})
      out += fmt::format(
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>",
          kLeft - 6, y(mass) + 4, mass);
    return out;
  }

  std::string expected() const {
    std::string path;
    double label = 1;
    for (const Finding* row : masses_.rows) {
      if (!std::isfinite(row->expected)) continue;
      const double half = 0.5;
      path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", path.empty() ? "M" : "L",
                          x(static_cast<double>(row->query) - half),
                          y(row->expected),
                          x(static_cast<double>(row->query) + half));
      label = row->expected;
    }
    if (path.empty()) return {};
    // Behind the last row: above or below the line a row's stem may stand.
    const auto last = static_cast<double>(masses_.rows.back()->query);
    return fmt::format(
        "<path class=\"expected\" d=\"{}\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">expected</text>",
        path, x(last + 0.5) + 6, y(label) + 4);
  }

  // A dot for each row, with its distance; NaN and infinities at the edge.
  std::string observed() const {
    std::string out;
    for (const Finding* row : masses_.rows) {
      const double at = x(static_cast<double>(row->query));
      if (!std::isfinite(row->observed)) {
        out += fmt::format(
            "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", at,
            kTop - 5, format_double(row->observed));
        continue;
      }
      const double to = std::isfinite(row->expected) ? row->expected : bottom_;
      out += fmt::format(
          "<path class=\"stem\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><circle "
          "class=\"observed\" cx=\"{0:.1f}\" cy=\"{2:.1f}\" r=\"3.5\"><title>"
          "query {3}: {4} instead of {5}</title></circle>",
          at, y(to), y(row->observed), row->query, axis_number(row->observed),
          axis_number(row->expected));
    }
    return out;
  }

  const Masses& masses_;
  std::int64_t first_ = 0, last_ = 1;
  double bottom_ = 0, top_ = 0.1;
};

}  // namespace

std::string html_row_mass(const ProblemResult& problem, const std::string& id) {
  const Masses masses = masses_of(problem);
  if (masses.rows.empty()) return {};
  const std::string words = fmt::format(
      "Sum of the weights of each row, batch {}, head {}: {} of the wrong sum",
      masses.batch, masses.head, counted(std::ssize(masses.rows), "row"));
  return "<h5>Sum of the weights of each row</h5><figure><figcaption>" +
         html_text(words) +
         (masses.complete ? "; rows without a mark are within the bound."
                          : "; there are more findings than are kept.") +
         "</figcaption>" + Plot(masses).svg(id, words) + "</figure>\n";
}

}  // namespace attnguard
