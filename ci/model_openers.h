// Which runtime opens which model file.
//
// Adding one: a row in model_openers.cc.
#ifndef ATTNGUARD_CI_MODEL_OPENERS_H_
#define ATTNGUARD_CI_MODEL_OPENERS_H_

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "guard/base/status.h"
#include "guard/model/model.h"

namespace attnguard {

struct ModelOpener {
  std::string_view name;       // "llama.cpp"
  std::string_view extension;  // ".gguf"

  // What the file begins with, where the format has such a mark: it decides
  // before the extension does. Empty: the extension alone.
  std::string_view magic;

  std::string_view options;  // For the help: "flash=on|off|auto ..."
  Result<Model> (*open)(const std::string& file,
                        const std::map<std::string, std::string>& options);
};

std::span<const ModelOpener> all_model_openers();

// kIo: no such file, a folder, or unreadable. kInvalidArgument: no row knows
// it, or it is empty.
Result<const ModelOpener*> find_model_opener(const std::string& file);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_MODEL_OPENERS_H_
