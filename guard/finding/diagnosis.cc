#include "guard/finding/diagnosis.h"

#include <cstdio>

namespace attnguard {
namespace {

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2g", value);
  return text;
}

std::string name_of(const Explanation& explanation) {
  return explanation.id.empty() ? explanation.convention : explanation.id;
}

// "all 9 probe calls", "all 27 probe calls on 3 problems"
std::string calls_text(const Diagnosis& diagnosis) {
  std::string text = "all " + std::to_string(diagnosis.calls) + " probe calls";
  if (diagnosis.problems.size() > 1)
    text += " on " + std::to_string(diagnosis.problems.size()) + " problems";
  return text;
}

// What such an engine does, and below it how well that explains the outputs.
void add_explanation(const Diagnosis& diagnosis, const Explanation& explanation,
                     std::vector<std::string>& lines) {
  const bool first = lines.empty();
  if (explanation.id.empty())
    lines.push_back((first ? "this engine is " : "or it is ") +
                    explanation.convention);
  else
    lines.push_back((first ? "behaves like: " : "or like: ") +
                    explanation.summary + " (" + explanation.id + ")");
  if (!explanation.id.empty() && explanation.is_convention())
    lines.push_back("  in other words: " + explanation.convention);
  lines.push_back("  reproduces " + calls_text(diagnosis) +
                  ", largest difference " +
                  two_digits(explanation.largest_difference));
  if (!explanation.told_apart.empty())
    lines.push_back("  " + explanation.told_apart);
  std::string reports;
  for (const std::string& report : explanation.reports)
    reports += (reports.empty() ? "" : ", ") + report;
  if (!reports.empty()) lines.push_back("  reports: " + reports);
}

std::string near_misses_line(const Diagnosis& diagnosis) {
  std::string line =
      "nothing known reproduces " + calls_text(diagnosis) + "; closest: ";
  for (const Explanation& near : diagnosis.explanations) {
    if (&near != &diagnosis.explanations.front()) line += ", ";
    line += name_of(near) + " (" + std::to_string(near.calls_reproduced) +
            " of " + std::to_string(diagnosis.calls) + ")";
  }
  return line;
}

}  // namespace

std::vector<std::string> diagnosis_lines(const Diagnosis& diagnosis) {
  if (diagnosis.explanations.empty())
    return {"behaves like no known defect: of " +
            std::to_string(diagnosis.calls) + " probe calls " +
            std::to_string(diagnosis.telling_calls) +
            " differ from a correct engine"};
  if (!diagnosis.explanations.front().reproduces_all)
    return {near_misses_line(diagnosis)};
  std::vector<std::string> lines;
  for (const Explanation& explanation : diagnosis.explanations)
    add_explanation(diagnosis, explanation, lines);
  if (!diagnosis.probe_needed.empty())
    lines.push_back("to decide, " + diagnosis.probe_needed);
  return lines;
}

std::string diagnosis_name(const Diagnosis& diagnosis) {
  if (diagnosis.explanations.empty() ||
      !diagnosis.explanations.front().reproduces_all)
    return "nothing known";
  return name_of(diagnosis.explanations.front());
}

}  // namespace attnguard
