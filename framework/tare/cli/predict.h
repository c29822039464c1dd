// `tare predict`.
#pragma once

#include <string>

namespace tare::cli {

/// Runs `tare predict`: argv[0] is ignored, the words after it are the command's arguments. The
/// help names it as it was `called`, such as "tare-predict". Returns the exit status, see ExitCode;
/// an error is printed.
int predict_program(int argc, char** argv, const std::string& called);

}  // namespace tare::cli
