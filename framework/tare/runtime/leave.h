// The end of a program without the destructors of what lives as long as the process.
#pragma once

namespace tare {

/// Ends the process with this exit status once the buffers of stdio are written. In a release build
/// no destructor of a static object runs: those of LibTorch take 0.08 s, and free what the system
/// frees anyway. Files must be closed and threads joined before. A debug build calls std::exit(),
/// so that tools which report at the end of a process do.
[[noreturn]] void leave(int status);

}  // namespace tare
