#include "adapters/defect/defects.h"

#include <string>
#include <vector>

#include "guard/base/text.h"
#include "guard/defect/defect.h"

namespace attnguard {
namespace {

std::vector<EngineListing> list_engines() {
  std::vector<EngineListing> listings;
  for (const Defect* defect : all_defects())
    listings.push_back({"defect:" + std::string(defect->id),
                        (defect->legal() ? "" : "known bad: ") +
                            std::string(defect->summary)});
  return listings;
}

Result<Engine> open_engine(const EngineSpec& spec) {
  if (!spec.options.empty())
    return invalid_argument("engine '" + spec.full +
                            "': defects take no options, got '" +
                            spec.options.begin()->first + "'");
  if (const Defect* defect = find_defect(spec.engine); defect != nullptr)
    return defect_engine(*defect);
  std::vector<std::string_view> ids;
  for (const Defect* defect : all_defects()) ids.push_back(defect->id);
  return invalid_argument("no defect '" + spec.engine + "'" +
                          suggestion(spec.engine, ids));
}

}  // namespace

const Adapter kDefectAdapter = {
    .name = "defect",
    .summary =
        "the known defects: fp64 attention with one thing wrong, each as "
        "public reports describe it",
    .list = list_engines,
    .open = open_engine,
};

}  // namespace attnguard
