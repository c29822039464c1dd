// `tare predict`.
#pragma once

namespace tare::cli {

/// The whole of `tare predict`: argv[0] is ignored, what follows are the command's arguments.
/// Returns the exit status, see ExitCode; an error is printed.
int predict_program(int argc, char** argv);

}  // namespace tare::cli
