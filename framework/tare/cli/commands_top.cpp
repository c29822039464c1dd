// `tare top`: shows the load and memory of the devices, again and again.
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "tare/base/terminal.h"
#include "tare/cli/handlers.h"
#include "tare/cli/interval.h"
#include "tare/cli/top.h"
#include "tare/memory/machine.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

using namespace std::chrono_literals;

constexpr size_t kProcesses = 10;  // of the host

void show(bool as_json, bool clear) {
  const Top top = look(kProcesses);
  if (clear) std::cout << "\033[H\033[2J";
  std::cout << (as_json ? json(top) : text(top, width_for(std::cout))) << '\n' << std::flush;
}

}  // namespace

int top_command(const Arguments& arguments) {
  const bool as_json = arguments.has("json"), watch = arguments.has("watch");
  const Seconds between = watch ? interval(arguments, "watch", "tare top") : Seconds(0);
  const InterruptScope interrupts;
  static_cast<void>(memory::processor_utilisation());
  wait(200ms);  // the host's load is taken over it
  while (interrupts.signal() == 0) {
    show(as_json, watch && !as_json && ::isatty(STDOUT_FILENO) != 0);
    if (!watch) return kSuccess;
    wait(between);
  }
  return 128 + interrupts.signal();
}

}  // namespace tare::cli
