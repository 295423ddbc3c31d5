// XML Schema in tests, by xmllint of Debian's libxml2-utils. The schemas come
// from ci/fetch_engines.sh, as those of json_schema.h do.
#ifndef ATTNGUARD_TESTS_SUPPORT_XML_SCHEMA_H_
#define ATTNGUARD_TESTS_SUPPORT_XML_SCHEMA_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "guard/base/text.h"
#include "tests/support/json_schema.h"
#include "tests/support/program.h"
#include "tests/support/required_engine.h"

namespace attnguard {

inline bool xml_validator_found() {
  static const bool found = run_program("xmllint --version").code == 0;
  return found;
}

// What is wrong with the document, a line for each; empty when it is valid.
inline std::string xml_schema_errors(const std::string& schema,
                                     const std::string& document) {
  const TestFolder folder;
  const ProgramOutcome outcome =
      run_program("xmllint --nonet --noout --schema " + shell_quote(schema) +
                  " " + shell_quote(folder.write("document.xml", document)));
  if (outcome.code == 0) return "";
  return outcome.output + "xmllint ended with " + std::to_string(outcome.code);
}

}  // namespace attnguard

// Ends the test where validator or schema are missing: skipped, or failed where
// ATTNGUARD_REQUIRE_ENGINES lists "schemas".
#define ATTNGUARD_NEED_XML_SCHEMA(path)                                      \
  if (!attnguard::xml_validator_found() || !std::filesystem::exists(path)) { \
    const std::string missing =                                              \
        attnguard::xml_validator_found() ? path : "xmllint";                 \
    if (attnguard::engine_is_required("schemas")) FAIL() << missing;         \
    GTEST_SKIP() << "skipped: " << missing << " not found";                  \
  }                                                                          \
  static_assert(true)

#endif  // ATTNGUARD_TESTS_SUPPORT_XML_SCHEMA_H_
