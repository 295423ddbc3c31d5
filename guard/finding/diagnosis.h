// What a failing engine behaves like: the outcome of comparing its outputs
// with those of known defects and of other conventions, as plain data.
#ifndef ATTNGUARD_GUARD_FINDING_DIAGNOSIS_H_
#define ATTNGUARD_GUARD_FINDING_DIAGNOSIS_H_

#include <string>
#include <string_view>
#include <vector>

namespace attnguard {

// A known cause, and how well it explains what the engine returned.
struct Explanation {
  std::string id;       // The defect's; empty for a convention alone.
  std::string summary;  // One line: what such an engine does.
  std::string cls;      // The defect's class: "past_dropped"; may be empty.
  std::vector<std::string> reports;  // "owner/repository#number"

  // Not empty when the engine is correct under another reading of the
  // problem: "consistent with causal_bottom_right; the policy says
  // causal_top_left". With an id, defect and reading are one and the same.
  std::string convention;

  int calls_reproduced = 0;  // Of Diagnosis::calls.
  bool reproduces_all = false;

  // Largest |engine - explanation| over the calls that it reproduces.
  double largest_difference = 0;

  // What separates it from the next best one; empty when nothing does.
  std::string told_apart;

  bool is_convention() const { return !convention.empty(); }
};

struct Diagnosis {
  // The best first: all that reproduce every call, five at most; where none
  // does, up to three near misses.
  std::vector<Explanation> explanations;

  // Defects that reproduce every call and that no problem tried could tell
  // apart; the first explanation is among them. Empty when none does.
  std::vector<std::string> equally_good;

  // Which further problem would tell the first two apart, in words, where
  // this engine cannot run it; empty otherwise.
  std::string probe_needed;

  int calls = 0;          // Probe calls compared.
  int telling_calls = 0;  // Those in which the engine is not correct.
  std::vector<std::string> problems;  // What they ran on, smallest first.
};

// The diagnosis in words, the best explanation first. Lines that belong to the
// one above are indented:
//
//   behaves like: softmax over the query axis (softmax-over-queries)
//     reproduces all 9 probe calls, largest difference 2e-07
//     reports: owner/repository#12
//
// Never empty.
std::vector<std::string> diagnosis_lines(const Diagnosis& diagnosis);

// The first explanation in a few words: "last-key-dropped",
// "causal_bottom_right"; "nothing known" when none reproduces every call.
std::string diagnosis_name(const Diagnosis& diagnosis);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_FINDING_DIAGNOSIS_H_
