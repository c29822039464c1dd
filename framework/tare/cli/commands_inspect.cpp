#include <iostream>

#include "tare/cli/command.h"
#include "tare/inference/inspect.h"

namespace tare::cli {

int inspect_command(const Arguments& arguments) {
  std::cout << inspect(arguments.positional().front());
  return kSuccess;
}

}  // namespace tare::cli
