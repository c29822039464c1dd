// Writes moments as text.
#include "tare/base/time_text.h"

#include <cstdio>
#include <ctime>

namespace tare {

using std::chrono::microseconds;
using std::chrono::system_clock;

std::string time_text(system_clock::time_point time) {
  const std::time_t whole = system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm parts{};
  localtime_r(&whole, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

std::string exact_time_text(system_clock::time_point time) {
  const auto micros = std::chrono::floor<microseconds>(time.time_since_epoch()).count() % 1'000'000;
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%06d", static_cast<int>(micros));
  return time_text(time) + fraction;
}

}  // namespace tare
