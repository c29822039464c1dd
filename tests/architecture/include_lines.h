// The #include lines of the framework's sources, as the tests of its structure read them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace tare::architecture {

/// The header that an #include line names; "" for other lines.
inline std::string included(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return "";
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos || !line.substr(word).starts_with("include")) return "";
  const size_t open = line.find_first_of("\"<", word);
  if (open == std::string_view::npos) return "";
  const size_t close = line.find_first_of("\">", open + 1);
  return std::string(line.substr(open + 1, close - open - 1));
}

/// The folder framework/tare; empty if TARE_SOURCE_DIR is not set, as outside ctest.
inline std::filesystem::path source_folder() {
  const char* folder = std::getenv("TARE_SOURCE_DIR");
  return folder == nullptr ? std::filesystem::path()
                           : std::filesystem::path(folder) / "framework" / "tare";
}

}  // namespace tare::architecture
