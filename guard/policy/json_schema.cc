// The policy's schema for editors, from the tables that the parser reads by.
#include <nlohmann/json.hpp>

#include "guard/policy/policy_yaml.h"
#include "guard/policy/runtime_options.h"
#include "guard/policy/suppress.h"
#include "guard/policy/yaml_schema.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::span<const std::string_view>;

Json reference(const char* name) {
  return {{"$ref", std::string("#/definitions/") + name}};
}

Json closed_object(Json properties) {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"properties", std::move(properties)}};
}

template <typename Enum>
Json enumeration(std::span<const Enum> values,
                 std::string_view (*name_of)(Enum)) {
  Json names = Json::array();
  for (Enum value : values) names.push_back(name_of(value));
  return {{"enum", std::move(names)}};
}

Json tolerance_schema() {
  return {{"oneOf", Json::array({{{"enum", kToleranceWords}},
                                 {{"type", "number"}, {"minimum", 0}}})}};
}

Json check_tolerance_schema() {
  Json by_dtype = Json::object();
  for (const DtypeInfo& info : all_dtypes())
    by_dtype[std::string(info.name)] = reference("tolerance");
  return {{"oneOf", Json::array({reference("tolerance"),
                                 closed_object(std::move(by_dtype))})}};
}

// A map from check ids, or "*", to `value`.
Json by_check(Names check_ids, const char* value) {
  Json properties = Json::object();
  properties[std::string(kEveryCheck)] = reference(value);
  for (std::string_view id : check_ids)
    properties[std::string(id)] = reference(value);
  return closed_object(std::move(properties));
}

Json field_value() {
  const Json scalar = {{"type", Json::array({"string", "number", "boolean"})}};
  const Json inner = {{"type", "array"}, {"minItems", 1}, {"items", scalar}};
  const Json items = {{"anyOf", Json::array({scalar, inner})}};
  const Json list = {{"type", "array"}, {"minItems", 1}, {"items", items}};
  return {{"anyOf", Json::array({scalar, list})}};
}

Json problem_schema() {
  Json properties = Json::object();
  for (const ProblemField& field : all_problem_fields()) {
    Json property = reference("field");
    property = {{"description", field.help},
                {"allOf", Json::array({std::move(property)})}};
    properties[std::string(field.name)] = std::move(property);
  }
  Json schema = closed_object(std::move(properties));
  schema["minProperties"] = 1;
  return schema;
}

Json suppression_schema() {
  Json properties = Json::object();
  Json required = Json::array();
  for (const SuppressionKeyInfo& info : suppression_keys()) {
    Json property = {
        {"description", info.help}, {"type", "string"}, {"minLength", 1}};
    if (info.text == &Suppression::kind)
      property["enum"] = finding_kind_names();
    if (info.text == nullptr)
      property["pattern"] = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
    properties[std::string(info.name)] = std::move(property);
    if (info.required) required.push_back(info.name);
  }
  Json schema = closed_object(std::move(properties));
  schema["required"] = std::move(required);
  return schema;
}

Json list_of(const char* name, int least) {
  return {{"type", "array"}, {"minItems", least}, {"items", reference(name)}};
}

Json key_schema(PolicyKey key) {
  switch (key) {
    case PolicyKey::kVersion:
      return {{"const", 1}};
    case PolicyKey::kExtends:
      return {{"type", "string"}, {"minLength", 1}};
    case PolicyKey::kSeed:
      return {{"type", "integer"}, {"minimum", 0}};
    case PolicyKey::kCoverage:
      return enumeration<Coverage>(kAllCoverages, coverage_name);
    case PolicyKey::kChecks:
      return reference("checks");
    case PolicyKey::kTolerances:
      return reference("tolerances");
    case PolicyKey::kProblems:
    case PolicyKey::kExtraProblems:
      return list_of("problem", 1);
    case PolicyKey::kEngines:
      return {{"type", "object"},
              {"additionalProperties", reference("engine")}};
    case PolicyKey::kRuntime:
      return reference("runtime");
    case PolicyKey::kSuppressions:
      break;
  }
  return list_of("suppression", 0);
}

Json keys_schema(bool in_engine) {
  Json properties = Json::object();
  for (const PolicyKeyInfo& info : policy_keys()) {
    if (in_engine && info.place == KeyPlace::kTop) continue;
    Json value = key_schema(info.key);
    // Beside a $ref a draft 7 reader looks at nothing else.
    if (value.contains("$ref")) value = {{"allOf", Json::array({value})}};
    value["description"] = info.help;
    properties[std::string(info.name)] = std::move(value);
  }
  return closed_object(std::move(properties));
}

// The `runtime` section, or what it says of some layers.
Json runtime_schema(bool top) {
  Json properties = Json::object();
  Json checks = Json::object();
  for (const RuntimeOption& option : all_runtime_options()) {
    Json property = {{"description", option.help + " " + option.values}};
    if (option.is_check)
      checks[option.name] = std::move(property);
    else if (top || option.by_layer)
      properties[option.name] = std::move(property);
  }
  properties["checks"] = closed_object(std::move(checks));
  if (top)
    properties["layers"] = {{"type", "object"},
                            {"additionalProperties", reference("layer")}};
  return closed_object(std::move(properties));
}

}  // namespace

std::string policy_json_schema(std::span<const std::string_view> check_ids) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "attnguard policy"}};
  schema.update(keys_schema(false));
  schema["required"] = Json::array({"version"});
  schema["definitions"] = {
      {"severity", enumeration<Severity>(kAllSeverities, severity_name)},
      {"tolerance", tolerance_schema()},
      {"check_tolerance", check_tolerance_schema()},
      {"checks", by_check(check_ids, "severity")},
      {"tolerances", by_check(check_ids, "check_tolerance")},
      {"engine", keys_schema(true)},
      {"field", field_value()},
      {"problem", problem_schema()},
      {"suppression", suppression_schema()},
      {"runtime", runtime_schema(true)},
      {"layer", runtime_schema(false)}};
  return schema.dump(2) + "\n";
}

std::string schema_modeline() {
  return "# yaml-language-server: $schema=" + std::string(kPolicySchemaFile) +
         "\n";
}

}  // namespace attnguard
