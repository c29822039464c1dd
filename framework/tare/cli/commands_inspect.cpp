// `tare inspect`.
#include <filesystem>
#include <iostream>

#include "tare/cli/command.h"
#include "tare/inference/bundle.h"
#include "tare/inference/inspect.h"

namespace tare::cli {

int inspect_command(const Arguments& arguments) {
  std::filesystem::path path = arguments.positional().front();
  std::error_code error;
  if (std::filesystem::exists(path / "recipe.yaml", error)) path = bundle_at(path);  // of a run
  std::cout << (arguments.has("json") ? inspect_json(path) : inspect(path, width_for(std::cout)));
  return kSuccess;
}

}  // namespace tare::cli
