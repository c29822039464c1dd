#include "tare/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace tare {

size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace tare
