// Logging. spdlog is behind this header: log.cpp is the only file that includes it, and it never
// sees LibTorch's include folder, whose fmt is another version.
#pragma once

#include <string_view>

namespace tare::log {

enum class Level { debug, info, warning, error, off };

/// One line on standard error, "[tare] text" (warnings and errors say so). Control characters of
/// `text` are escaped, so text from outside cannot forge a line. Thread-safe.
void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);

/// Returns the level before. The default is `info`, or what the environment variable TARE_LOG
/// names.
Level set_level(Level level);
/// Level by name ("debug", "info", "warning", "error", "off"); throws ConfigError.
[[nodiscard]] Level parse_level(std::string_view name);

}  // namespace tare::log
