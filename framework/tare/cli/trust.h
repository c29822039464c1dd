// The option --trust, which lets a command run the TorchScript program that a bundle's model needs.
#pragma once

#include "tare/cli/arguments.h"

namespace tare::cli {

/// Returns the description of the option.
[[nodiscard]] inline OptionSpec trust_option() {
  return {"trust", "FILE", "run the TorchScript program FILE, which the bundle's model needs"};
}

/// Trusts the program that the option names, where it is given. Throws ConfigError, naming the
/// command, for a name that is not that of a file.
void trust_given(const Arguments& arguments, const char* command);

}  // namespace tare::cli
