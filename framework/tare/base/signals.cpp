// Ignores the signals of refused writes, and restores them.
#include "tare/base/signals.h"

#include <csignal>

namespace tare {

void ignore_file_limit_signal() { std::signal(SIGXFSZ, SIG_IGN); }

void ignore_closed_output_signal() { std::signal(SIGPIPE, SIG_IGN); }

void restore_write_signals() {
  std::signal(SIGXFSZ, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace tare
