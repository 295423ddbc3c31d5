#include "guard/model/model_check_table.h"

#include <array>

namespace attnguard {

std::span<const ModelCheckInfo* const> all_model_checks() {
  static constexpr std::array<const ModelCheckInfo*, 8> kChecks = {
      &kModelFuture, &kModelPrefix,     &kModelIncremental, &kModelBatch,
      &kModelReuse,  &kModelRepeatable, &kModelFinite,      &kModelLossGap,
  };
  return kChecks;
}

const ModelCheckInfo* find_model_check(std::string_view id) {
  for (const ModelCheckInfo* check : all_model_checks())
    if (check->id == id) return check;
  return nullptr;
}

std::vector<std::string_view> model_check_ids() {
  std::vector<std::string_view> ids;
  for (const ModelCheckInfo* check : all_model_checks())
    ids.push_back(check->id);
  return ids;
}

}  // namespace attnguard
