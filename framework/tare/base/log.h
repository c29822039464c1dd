// Logging to standard error. Only log.cpp includes spdlog, and without LibTorch's include folder,
// which has another version of fmt.
#pragma once

#include <string_view>

namespace tare::log {

/// Ranks the lines of the log by severity; `off` is above all levels.
enum class Level { debug, info, warning, error, off };

/// Writes one line on standard error, "[tare] text" (warnings and errors say so; on a terminal
/// "[tare] warning:" is yellow and "[tare] error:" red, unless NO_COLOR is set). Control characters
/// of `text` are escaped, so text from outside cannot forge a line. Thread-safe.
void debug(std::string_view text);
void info(std::string_view text);     ///< prints as debug() does
void warning(std::string_view text);  ///< prints as debug() does
void error(std::string_view text);    ///< prints as debug() does
/// Prints as warning() does, unless the process has printed this text by it already: for findings
/// about files that a program reads several times. Thread-safe.
void warning_once(std::string_view text);
/// Prints as info() does, once as warning_once() does.
void info_once(std::string_view text);

/// Returns the previous level. The default is `info`, or the environment variable TARE_LOG.
Level set_level(Level level);
/// Returns level by name ("debug", "info", "warning", "error", "off"); throws ConfigError.
[[nodiscard]] Level parse_level(std::string_view name);

}  // namespace tare::log
