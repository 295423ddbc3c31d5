// A known defect: the reference with one thing wrong, and where that shows.
// The guard is run on them to prove that it sees what it says it sees;
// diagnosis compares a failing engine with them to say what it behaves like.
//
// The legal variants beside them round in an unusual order or type, as correct
// kernels do: on those the guard must stay silent.
//
// Adding one: a file in this folder that defines a Defect, and a line in
// defect_table.h and in defect_table.cc.
#ifndef ATTNGUARD_GUARD_DEFECT_DEFECT_H_
#define ATTNGUARD_GUARD_DEFECT_DEFECT_H_

#include <array>
#include <span>
#include <string_view>

#include "guard/engine/attention_variant.h"

namespace attnguard {

// What breaks. The same classes sort the public reports of such faults.
enum class DefectClass {
  kFutureLeakDirect,         // earlier rows read later keys and values
  kFutureLeakNormaliser,     // the denominator counts what it must not
  kFutureLeakGlobalStat,     // a statistic or a selection carries the future
  kFiniteMaskLeak,           // the masked score is a finite number
  kPastDropped,              // an allowed key has no weight
  kWindowOffByOne,           // an edge of the window is off by one
  kWindowIgnored,            // keys older than the window are attended
  kPaddingOrUnusedSlotLeak,  // padding enters the softmax or the product
  kCrossSequence,            // another batch entry is visible
  kStaleOrUninit,            // memory that was never written is read
  kRowSumOrMerge,            // normaliser or merge weights wrong
  kNanInf,                   // overflow, precision collapse, empty tiles
  kPrefillNeDecode,          // one phase differs from the other
  kNondeterminismRace,       // a race inside the kernel
  kWrongHeadOrDim,           // head map or channel range wrong
  kWrongScaleOrBias,         // scale or bias wrong or lost
  kMaskMisread,              // a mask read with the wrong axis or offset
  kIndexOverflowOob,         // an index that wraps or leaves its tensor
  kContractAlignment,        // the mask means something else here
  kNumericsNotBug,           // legal rounding: no defect
};

// "future_leak_direct"
std::string_view defect_class_name(DefectClass cls);

// Every class, in the order above.
std::span<const DefectClass> all_defect_classes();

struct Defect {
  std::string_view id;       // kebab-case, the file's stem
  std::string_view summary;  // One line: what it does.
  DefectClass cls;

  // Public reports of it, "owner/repository#number"; the rest is empty.
  std::array<std::string_view, 5> reports = {};

  // Problems, in their text form, on which the guard must find it; on a legal
  // variant they are those on which it must not. The rest is empty.
  std::array<std::string_view, 3> shows_on = {};

  // One on which it is the reference within rounding; empty: it always shows.
  std::string_view hides_on = {};

  AttentionVariant (*make)() = nullptr;

  // What an engine with this defect says of its rounding.
  Numerics (*numerics)(const Problem&) = default_numerics;

  bool legal() const { return cls == DefectClass::kNumericsNotBug; }
};

// Every defect by class, in the classes' order; legal variants are the last.
std::span<const Defect* const> all_defects();

// nullptr when there is no such defect.
const Defect* find_defect(std::string_view id);

// The defect as an engine, "defect:ID", that takes every problem in host
// memory.
Engine defect_engine(const Defect& defect);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DEFECT_DEFECT_H_
