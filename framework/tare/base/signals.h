// What a refused write does to a program: fail with an error, or end the process by a signal.
#pragma once

namespace tare {

// By default the system ends a process that writes beyond the limit on file sizes (SIGXFSZ) or to a
// pipe that nobody reads (SIGPIPE). A program's main() chooses; the library never does by itself.

/// From now on a write beyond the limit on file sizes (`ulimit -f`) fails, so that saving throws
/// IoError with "File too large".
void ignore_file_limit_signal();

/// From now on printing into a closed pipe fails, so that work goes on without its output. For
/// programs whose result is a file; one that only prints better ends by the signal.
void ignore_closed_output_signal();

/// Both as the system has them at first, for another program: a process hands what it ignores to
/// the programs it executes. Between fork and exec; async-signal-safe.
void restore_write_signals();

}  // namespace tare
