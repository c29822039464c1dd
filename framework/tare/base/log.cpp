// Writes the log with spdlog, which no other file includes.
#include "tare/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/base/no_findings.h"
#include "tare/base/terminal.h"

namespace tare::log {

namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> all{"debug", "info", "warning", "error", "off"};
  return all;
}

spdlog::level::level_enum native(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      break;
  }
  return spdlog::level::off;
}

/// Returns the prefix of a line. Standard error may be redirected at any time, so every call checks
/// it.
std::string prefix_of(Level level) {
  const bool colour = on_terminal(STDERR_FILENO) && colour_allowed();
  switch (level) {
    case Level::debug:
      return "[tare] debug: ";
    case Level::warning:
      return tinted("[tare] warning:", Tint::yellow, colour) + ' ';
    case Level::error:
      return tinted("[tare] error:", Tint::red, colour) + ' ';
    case Level::info:
    case Level::off:
      break;
  }
  return "[tare] ";
}

struct Logger {
  spdlog::logger sink{"tare", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  std::atomic<Level> level{Level::info};
  std::mutex once;
  std::set<std::string, std::less<>> said;  // guarded by once

  Logger() {
    sink.set_pattern("%v");
    sink.flush_on(spdlog::level::debug);
    set(Level::info);
    const char* wanted = std::getenv("TARE_LOG");
    if (wanted == nullptr) return;
    try {
      set(parse_level(wanted));
    } catch (const ConfigError& error) {
      write(Level::warning, std::string("TARE_LOG: ") + error.what());
    }
  }
  Level set(Level wanted) {
    sink.set_level(native(wanted));
    return level.exchange(wanted);
  }
  void write(Level at, std::string_view text) {
    if (!sink.should_log(native(at))) return;
    const std::string line = prefix_of(at) + printable(text, std::numeric_limits<size_t>::max());
    sink.log(native(at), spdlog::string_view_t(line.data(), line.size()));
  }
  void write_once(Level at, std::string_view text) {
    if (!sink.should_log(native(at))) return;
    const std::lock_guard lock(once);
    if (said.emplace(text).second) write(at, text);
  }
};

thread_local int held_back = 0;  // scopes of NoFindings

/// Never destroyed, so that a destructor at exit may still log.
Logger& logger() {
  static Immortal<Logger> instance;
  return *instance;
}

}  // namespace

void debug(std::string_view text) { logger().write(Level::debug, text); }
void info(std::string_view text) { logger().write(Level::info, text); }
void warning(std::string_view text) { logger().write(Level::warning, text); }
void error(std::string_view text) { logger().write(Level::error, text); }
void warning_once(std::string_view text) {
  if (held_back == 0) logger().write_once(Level::warning, text);
}
void info_once(std::string_view text) {
  if (held_back == 0) logger().write_once(Level::info, text);
}

NoFindings::NoFindings() noexcept { ++held_back; }
NoFindings::~NoFindings() { --held_back; }

Level set_level(Level level) { return logger().set(level); }

Level parse_level(std::string_view name) {
  for (size_t i = 0; i < names().size(); ++i)
    if (names()[i] == name) return static_cast<Level>(i);
  throw ConfigError("log", "level", "is not known", "debug, info, warning, error, off",
                    std::string(name));
}

}  // namespace tare::log
