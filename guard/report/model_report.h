// The reports of whole models. Other formats (junit ...) render
// as_run_result() of guard/model/verify_model.h.
#ifndef ATTNGUARD_GUARD_REPORT_MODEL_REPORT_H_
#define ATTNGUARD_GUARD_REPORT_MODEL_REPORT_H_

#include <string>

#include "guard/model/verify_model.h"
#include "guard/report/report.h"

namespace attnguard {

// For people at a terminal: each check and its evidence, what is wrong, the two
// losses, the influence map of the smallest failing case, the verdict last.
std::string model_text_report(const ModelResult& result,
                              const ReportOptions& options);

// For programs; the schema is versioned as that of the json format is.
//
//   {schema_version, tool: {name, version, command}, verdict, exit_code, model,
//    description, note, tokens, random_tokens, seed, rounding, model_calls,
//    model_seconds, guard_seconds, replay,
//    loss: {one_pass, token_by_token, gap, mean_difference, bound, positions},
//    influence_map: {tokens, cells},
//    checks: [{check, verdict, note, coverage, num_findings, findings: [{kind,
//      probe, sequence, token, first_changed, entry, observed, expected, bound,
//      message}]}]}
std::string model_json_report(const ModelResult& result,
                              const ReportOptions& options);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_MODEL_REPORT_H_
