// JSON Schema in tests, by Debian's python3-jsonschema. Schemas that are not
// ours are not in the repository: ci/fetch_engines.sh fetches them beside the
// engines.
#ifndef ATTNGUARD_TESTS_SUPPORT_JSON_SCHEMA_H_
#define ATTNGUARD_TESTS_SUPPORT_JSON_SCHEMA_H_

#include <gtest/gtest.h>

#include <string>

#include "adapters/engines_folder.h"
#include "tests/support/program.h"
#include "tests/support/required_engine.h"

namespace attnguard {

// Where the fetched schema of that name would be.
inline std::string schema_path(const std::string& name) {
  return engines_folder().path + "/schemas/" + name;
}

// A Python that has jsonschema; empty without.
inline const std::string& schema_validator() {
  static const std::string found = [] {
    for (const char* python : {"/usr/bin/python3", "python3"})
      if (run_program(std::string(python) + " -c 'import jsonschema'").code ==
          0)
        return std::string(python);
    return std::string();
  }();
  return found;
}

// What is wrong with the document, a line for each; empty when it is valid.
inline std::string schema_errors(const std::string& schema,
                                 const std::string& document) {
  const TestFolder folder;
  const ProgramOutcome outcome =
      run_program(schema_validator() + " " +
                  shell_quote(ATTNGUARD_TEST_DATA "/support/validate_json.py") +
                  " " + shell_quote(schema) + " " +
                  shell_quote(folder.write("document.json", document)));
  if (outcome.code != 0 && outcome.output.empty())
    return "the validator ended with " + std::to_string(outcome.code);
  return outcome.output;
}

}  // namespace attnguard

// Ends the test where validator or schema are missing: skipped, or failed where
// ATTNGUARD_REQUIRE_ENGINES lists "schemas".
#define ATTNGUARD_NEED_SCHEMA(path)                                          \
  if (attnguard::schema_validator().empty() ||                               \
      !std::filesystem::exists(path)) {                                      \
    const std::string missing =                                              \
        attnguard::schema_validator().empty() ? "python3-jsonschema" : path; \
    if (attnguard::engine_is_required("schemas")) FAIL() << missing;         \
    GTEST_SKIP() << "skipped: " << missing << " not found";                  \
  }                                                                          \
  static_assert(true)

#endif  // ATTNGUARD_TESTS_SUPPORT_JSON_SCHEMA_H_
