// The commands of `tare` in a program of a user's own, with the entries that it adds to the
// registries.
#pragma once

namespace tare {

/// Runs the command that the arguments name (run, plan, sweep, ls, predict ...), as the program
/// `tare` does, and returns its exit status (runtime/exit_code.h). Call it once, at the end of
/// main() and before any tensor is made: it starts Tare itself, and may execute the program anew
/// once, with the same arguments. The runs of a sweep are processes of this program, so they know
/// the entries too. Throws nothing: an error is printed.
///
///     int main(int argc, char** argv) {
///       tare::callbacks::registry().add(...);
///       return tare::run_program(argc, argv);
///     }
[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace tare
