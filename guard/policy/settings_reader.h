// Reads the keys that the top level of a policy and its engines have in
// common: coverage, checks, tolerances.
#ifndef ATTNGUARD_GUARD_POLICY_SETTINGS_READER_H_
#define ATTNGUARD_GUARD_POLICY_SETTINGS_READER_H_

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/policy/policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_schema.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

class SettingsReader {
 public:
  // The arguments outlive the reader.
  SettingsReader(const SourceText& source,
                 std::span<const std::string_view> check_ids,
                 DiagnosticSink& sink);

  // Passes over keys that are no settings.
  void read(const YamlEntry& entry, SettingsPatch& patch);

  // The value of `engines`: one patch each, in order.
  std::vector<SettingsPatch> read_engines(const YamlNode& node);

 private:
  void read_engine(const YamlEntry& engine, SettingsPatch& patch);
  void read_coverage(const YamlNode& node, SettingsPatch& patch);
  void read_checks(const YamlNode& node, SettingsPatch& patch);
  void read_tolerances(const YamlNode& node, SettingsPatch& patch);
  void read_check_tolerance(const YamlEntry& entry, SettingsPatch& patch);
  std::optional<Tolerance> read_tolerance(const YamlNode& node,
                                          std::string_view check);
  void set_tolerance(const YamlEntry& entry, const YamlNode& value,
                     const Tolerance& tolerance, Dtype dtype,
                     SettingsPatch& patch);
  std::vector<YamlEntry> check_entries(const YamlNode& node);
  std::vector<std::string> ids_of(std::string_view key) const;

  template <typename Enum>
  std::optional<Enum> read_name(const YamlNode& node, std::string_view place,
                                std::string_view what,
                                std::span<const Enum> values,
                                std::string_view (*name_of)(Enum));

  const SourceText& source_;
  std::span<const std::string_view> check_ids_;
  std::vector<std::string_view> known_checks_;
  DiagnosticSink& sink_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_SETTINGS_READER_H_
