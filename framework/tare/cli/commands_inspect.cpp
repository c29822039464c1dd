#include <iostream>

#include "tare/cli/command.h"
#include "tare/inference/inspect.h"

namespace tare::cli {

int inspect_command(const Arguments& arguments) {
  const std::string& path = arguments.positional().front();
  std::cout << (arguments.has("json") ? inspect_json(path) : inspect(path, width_for(std::cout)));
  return kSuccess;
}

}  // namespace tare::cli
