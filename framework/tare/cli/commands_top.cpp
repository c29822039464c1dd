// `tare top`: shows the load and memory of the devices, again and again.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <thread>

#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/cli/command.h"
#include "tare/cli/top.h"
#include "tare/memory/machine.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr size_t kProcesses = 10;  // of the host
constexpr auto kShortest = 0.1, kLongest = 86'400.0;

Seconds interval(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= kShortest && seconds <= kLongest)) {
    throw ConfigError("tare top", "--watch must be a number of seconds from 0.1 to 86400, got '" +
                                      printable(text) + "'");
  }
  return Seconds(seconds);
}

/// Waits, but not on after a signal.
void wait(Seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!interrupt_requested() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::min<Seconds>(50ms, end - std::chrono::steady_clock::now()));
}

void show(bool as_json, bool clear) {
  const Top top = look(kProcesses);
  if (clear) std::cout << "\033[H\033[2J";
  std::cout << (as_json ? json(top) : text(top, width_for(std::cout))) << '\n' << std::flush;
}

}  // namespace

int top_command(const Arguments& arguments) {
  const bool as_json = arguments.has("json"), watch = arguments.has("watch");
  const Seconds between = watch ? interval(arguments.get("watch")) : Seconds(0);
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
