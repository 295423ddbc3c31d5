// One entry of the problem grid: its fields and their values, each tried
// against the problem's own field table.
#ifndef ATTNGUARD_GUARD_POLICY_PROBLEM_ENTRY_H_
#define ATTNGUARD_GUARD_POLICY_PROBLEM_ENTRY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"
#include "guard/problem/problem.h"

namespace attnguard {

struct FieldValue {
  std::string text;  // As in the problem line; ProblemField::set accepts it.
  std::size_t offset;
};

struct FieldValues {
  const ProblemField* field;
  std::size_t key_offset;
  std::vector<FieldValue> values;
};

// A shorthand's name is what the names of the fields it sets begin with.
bool is_shorthand_of(const ProblemField& shorthand, std::string_view name);

// The fields of an entry, a map, in the order of all_problem_fields(). When
// anything is wrong the sink has errors and the rest is returned.
std::vector<FieldValues> read_problem_entry(const YamlNode& entry,
                                            DiagnosticSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_PROBLEM_ENTRY_H_
