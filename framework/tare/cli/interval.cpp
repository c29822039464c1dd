// Reads the time between two looks of a command, and waits for it.
#include "tare/cli/interval.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "tare/base/error.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

constexpr auto kShortest = 0.1, kLongest = 86'400.0;

}  // namespace

Seconds interval(const Arguments& arguments, const std::string& option,
                 const std::string& command) {
  const std::string text = arguments.get(option);
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= kShortest && seconds <= kLongest))
    throw ConfigError(command, "--" + option +
                                   " must be a number of seconds from 0.1 to 86400, got '" +
                                   printable(text) + "'");
  return Seconds(seconds);
}

void wait(Seconds time) {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + time;
  while (!interrupt_requested() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::min<Seconds>(50ms, end - std::chrono::steady_clock::now()));
}

}  // namespace tare::cli
