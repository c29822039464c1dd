// `tare inspect`.
#include <filesystem>
#include <iostream>

#include "tare/checkpoint/checkpoint.h"
#include "tare/cli/command.h"
#include "tare/inference/bundle_folder.h"
#include "tare/inference/inspect.h"

namespace tare::cli {

int inspect_command(const Arguments& arguments) {
  std::filesystem::path path = arguments.positional().front();
  if (!checkpoint::exists(path)) path = bundle_at(path);
  const Description found =
      arguments.has("json") ? inspect_json(path) : inspect(path, width_for(std::cout));
  std::cout << found.text;
  return found.is_damaged ? kBadInput : kSuccess;
}

}  // namespace tare::cli
