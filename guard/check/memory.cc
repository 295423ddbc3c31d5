// memory: the engine writes all of its output and nothing else.
#include "guard/check/check_table.h"
#include "guard/check/control.h"
#include "guard/check/rows.h"

namespace attnguard {
namespace {

std::string verb_of(StrayAccess::Kind access) {
  switch (access) {
    case StrayAccess::Kind::kRead:
      return "read";
    case StrayAccess::Kind::kWrite:
      return "wrote";
    case StrayAccess::Kind::kUnknown:
      break;
  }
  return "touched memory";
}

std::string fault_message(const MemoryFault& fault) {
  const std::string tensor(fault.tensor);
  switch (fault.place) {
    case MemoryFault::Place::kBefore:
      return verb_of(fault.access) + " " + std::to_string(-fault.element) +
             " elements before the start of the " + tensor + " tensor";
    case MemoryFault::Place::kAfter:
      return verb_of(fault.access) + " past the end of the " + tensor +
             " tensor, at element offset " + std::to_string(fault.element);
    case MemoryFault::Place::kGap:
      return "wrote between the rows of the " + tensor +
             " tensor, at element offset " + std::to_string(fault.element) +
             ": strides are not respected";
    case MemoryFault::Place::kInput:
      break;
  }
  return "changed its input: the " + tensor + " tensor at element offset " +
         std::to_string(fault.element);
}

class MemoryCheck final : public Check {
 public:
  explicit MemoryCheck(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override { ReactsToInputs().plan(plan, context_); }

  void judge(const Observation& seen, FindingSink& sink) override {
    ++calls_;
    report_faults(seen, sink);
    find_unwritten(seen, sink);
  }

  void judge_failed(const Observation& seen, FindingSink& sink) override {
    report_faults(seen, sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_written_ > 0, "no output element was judged", result);
    result.coverage = std::to_string(calls_) +
                      " calls, every output element, 4096 bytes around every "
                      "tensor, every input byte";
  }

 private:
  static void report_faults(const Observation& seen, FindingSink& sink) {
    for (const MemoryFault& fault : seen.memory_faults) {
      const bool outside = fault.place == MemoryFault::Place::kBefore ||
                           fault.place == MemoryFault::Place::kAfter;
      Finding finding{
          .kind = outside ? FindingKind::kOutOfBounds : FindingKind::kOverwrite,
          .probe = seen.planned->scores->name()};
      finding.tensor = fault.tensor;
      finding.element = fault.element;
      finding.message = fault_message(fault);
      sink.add(std::move(finding));
    }
  }

  // The first channel of the row that was never written, or -1.
  std::int64_t first_unwritten(const Observation& seen, std::int64_t b,
                               std::int64_t h, std::int64_t i) const {
    return first_poison(context_.problem.output_dtype(),
                        seen.output.at(b, h, i), seen.output.strides[3],
                        context_.problem.head_dim_v);
  }

  // Every row, those without an allowed key too: whatever the convention
  // gives them must be written.
  void find_unwritten(const Observation& seen, FindingSink& sink) {
    const Problem& problem = *seen.problem;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
          const std::int64_t c = first_unwritten(seen, b, h, i);
          if (c < 0)
            ++rows_written_;
          else
            report_unwritten(seen, b, h, i, c, sink);
        }
  }

  void report_unwritten(const Observation& seen, std::int64_t b, std::int64_t h,
                        std::int64_t i, std::int64_t c, FindingSink& sink) {
    Finding finding{.kind = FindingKind::kUnwritten,
                    .probe = seen.planned->scores->name(),
                    .batch = b,
                    .head = h,
                    .query = i,
                    .channel = c};
    finding.message = row_name(b, h, i) + ": output channel " +
                      std::to_string(c) + " was never written";
    sink.add(std::move(finding));
  }

  CheckContext context_;
  std::int64_t calls_ = 0;
  std::int64_t rows_written_ = 0;
};

}  // namespace

const CheckInfo kCheckMemory = {
    .id = "memory",
    .summary = "all of the output is written, nothing else is touched",
    .cost = "passive",
    .explanation =
        R"(memory: all of the output is written, nothing else is touched

What it sees
  Before every call the output is filled with a NaN bit pattern that no kernel
  computes; an element that still holds it afterwards was never written. The
  bytes around every tensor, the gaps between strided output rows and every
  input byte are compared with what they were before the call. Where the engine
  runs in a process of its own (attnguard check, by default) the pages around
  every tensor are out of bounds too: reading there is found, which leaves no
  trace in any byte.

What it looks like
  The last rows of a partial query tile missing, a whole tile skipped because
  all its keys are masked, a vector store that runs over the end of a row whose
  head dimension is no multiple of the vector width, scaling q in place.

What to look at in the kernel
  The epilogue: which rows does it store, for partial tiles and for rows with
  no allowed key? Store widths at the last channel. Output strides.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      for (std::int64_t b = 0; b < context.problem.batch; ++b)
        if (context.problem.len_q(b) > 0) return "";
      return "there are no queries";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<MemoryCheck>(context);
    },
};

}  // namespace attnguard
