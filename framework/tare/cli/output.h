// What a command prints when its standard output is closed or full.
#pragma once

#include <string_view>

namespace tare::cli {

/// For commands whose result is in files: from now on they continue without a place to print to.
/// Other commands end by SIGPIPE, as usual for a program that feeds a pipe.
void continue_without_output();

/// Throws IoError if something that the command printed did not arrive, unless
/// continue_without_output() was called.
void check_output(std::string_view command);

}  // namespace tare::cli
