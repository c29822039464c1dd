// Sets whether a refused write fails with an error or ends the process by a signal.
#pragma once

namespace tare {

// By default the system ends a process that writes beyond the limit on file sizes (SIGXFSZ) or to a
// pipe that nobody reads (SIGPIPE). A program's main() chooses; the library never does by itself.

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail, so that saving throws
/// IoError with "File too large".
void ignore_file_limit_signal();

/// Makes printing into a closed pipe fail, so that work continues without its output. For
/// programs whose result is a file; one that only prints better ends by the signal.
void ignore_closed_output_signal();

/// Restores the system's defaults of both signals for another program: a process hands what it
/// ignores to the programs it executes. May be called between fork and exec; async-signal-safe.
void restore_write_signals();

}  // namespace tare
