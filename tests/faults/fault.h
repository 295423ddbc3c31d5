// Faults of memory and history: an engine that is right when each of its calls
// is looked at alone, or would be, had it not kept, lost or damaged something
// between or around them. A pure function of the inputs cannot express them;
// guard/defect/ has those that it can.
//
// Adding one: a file in this folder that defines a Fault, and a line in
// fault_table.h and in fault_table.cc.
#ifndef ATTNGUARD_TESTS_FAULTS_FAULT_H_
#define ATTNGUARD_TESTS_FAULTS_FAULT_H_

#include <array>
#include <span>
#include <string_view>

#include "guard/defect/defect.h"
#include "guard/engine/engine.h"

namespace attnguard {

struct Fault {
  std::string_view id;       // kebab-case, the file's stem
  std::string_view summary;  // One line: what it does.
  DefectClass cls;

  // Public reports of it, "owner/repository#number"; the rest is empty.
  std::array<std::string_view, 3> reports = {};

  // Problems that one engine is given one after the other. The guard must pass
  // all but the last and find the fault on the last. The rest is empty.
  std::array<std::string_view, 2> shows_on = {};

  // Every check here must report a violation there; the rest is empty.
  std::array<std::string_view, 3> seen_by = {};

  // A new engine that has called nothing yet; not faulty: the same engine with
  // the fault repaired, which the guard must pass.
  Engine (*make)(bool faulty) = nullptr;
};

// Every fault, by class.
std::span<const Fault* const> all_faults();

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_FAULTS_FAULT_H_
