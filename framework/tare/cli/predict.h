// `tare predict`.
#pragma once

namespace tare::cli {

/// Runs `tare predict`: argv[0] is ignored, the words after it are the command's arguments. Returns
/// the exit status, see ExitCode; an error is printed.
int predict_program(int argc, char** argv);

}  // namespace tare::cli
