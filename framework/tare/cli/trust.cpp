// Trusts the program that a user names.
#include "tare/cli/trust.h"

#include <filesystem>

#include "tare/base/error.h"
#include "tare/model/registry.h"

namespace tare::cli {

void trust_given(const Arguments& arguments, const char* command) {
  if (!arguments.has("trust")) return;
  const std::string file = arguments.get("trust");
  if (!std::filesystem::is_regular_file(file))
    throw ConfigError(command, "--trust must name the file of a TorchScript program, and '" +
                                   printable(file) +
                                   "' is no file; give the file that the bundle's model names, "
                                   "which `tare inspect` prints");
  models::trust_program(file);
}

}  // namespace tare::cli
